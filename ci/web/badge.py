"""How does the newest run of a workflow look from elsewhere? As a small picture for a README."""

from __future__ import annotations

import hashlib
from html import escape

from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response
from django.views.decorators.http import require_safe

from ci.models import Run
from ci.web.workflows import load_workflow
from forge.models import Repository
from forge.web.loading import get_repository

MAX_AGE_SECONDS = 60
_WORDS = {
    "success": ("passing", "#1a7f37"),
    "failure": ("failing", "#c0252d"),
    "startup_failure": ("failing", "#c0252d"),
    "cancelled": ("cancelled", "#5f6b76"),
    "skipped": ("skipped", "#5f6b76"),
}
_UNKNOWN = ("no status", "#5f6b76")
_CHARACTER, _PADDING = 6.9, 7


@require_safe
def badge(request: HttpRequest, owner: str, name: str, file: str) -> HttpResponse:
    """`?branch=` and `?event=` narrow it down; without, the default branch. Only ended runs count."""
    repository = get_repository(request, owner, name)
    workflow = load_workflow(repository, file)
    branch = request.GET.get("branch") or repository.default_branch
    runs = Run.objects.filter(workflow=workflow, ref=f"refs/heads/{branch[:1000]}".replace("\0", ""), state="ended")
    if event := request.GET.get("event"):
        runs = runs.filter(event=event[:50].replace("\0", ""))
    conclusion = runs.order_by("-id").values_list("conclusion", flat=True).first()
    word, colour = _WORDS.get(conclusion or "", _UNKNOWN)
    return _picture(request, repository, _svg(workflow.name[:60], word, colour))


def _picture(request: HttpRequest, repository: Repository, svg: str) -> HttpResponse:
    etag = f'"{hashlib.sha256(svg.encode()).hexdigest()[:16]}"'
    response = HttpResponse(svg, content_type="image/svg+xml; charset=utf-8")
    response["ETag"] = etag
    if repository.private:
        response["Cache-Control"] = "private, no-cache"
    else:
        response["Cache-Control"] = f"public, max-age={MAX_AGE_SECONDS}"
        # READMEs elsewhere may show it.
        response["Cross-Origin-Resource-Policy"] = "cross-origin"
    return get_conditional_response(request, etag=etag, response=response) or response


def _svg(name: str, word: str, colour: str) -> str:
    left, right = (round(len(text) * _CHARACTER + 2 * _PADDING) for text in (name, word))
    text = 'font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" fill="#fff" text-anchor="middle"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{escape(name)}: {word}"><title>{escape(name)}: {word}</title>'
        f'<rect width="{left + right}" height="20" rx="4" fill="{colour}"/>'
        f'<path d="M4 0h{left - 4}v20H4a4 4 0 0 1-4-4V4a4 4 0 0 1 4-4z" fill="#333b43"/>'
        f'<g {text}><text x="{left / 2}" y="14">{escape(name)}</text>'
        f'<text x="{left + right / 2}" y="14">{word}</text></g></svg>'
    )
