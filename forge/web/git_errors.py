"""What does a person see when git itself fails? Which page it was, and that nothing was lost."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render

from forge.git.bare import GitError, GitTimeout, OutputTooLarge

log = logging.getLogger(__name__)

View = Callable[..., HttpResponseBase]


def reading_git(view: View) -> View:
    """A view that answers 503, in words, where git is too slow, says too much or cannot read the repository."""

    @functools.wraps(view)
    def told(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except GitTimeout:
            return _page(request, "git took too long to read this. Try again in a moment, or look at a smaller part.")
        except OutputTooLarge:
            return _page(request, "This is too large for a page. Clone the repository to see it.")
        except GitError:
            log.exception("git failed at %s", request.path)
            return _page(request, "git could not read this repository. The operator's log says why.")

    return told


def _page(request: HttpRequest, problem: str) -> HttpResponse:
    return render(request, "forge/git_error.html", {"problem": problem}, status=503)
