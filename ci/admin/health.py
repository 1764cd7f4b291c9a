"""How is the instance, and what would make it better? A page for its operators, whole also where a part fails."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, connection, transaction
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from ci.admin.health_parts import PARTS, Found, Part
from forge.access import can_operate

logger = logging.getLogger(__name__)

# Of one statement: an operator looks at this page when the database is slow.
STATEMENT_MILLISECONDS = 2000
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Shown:
    part: Part
    found: Found


@never_cache
@require_safe
def health(request: HttpRequest) -> HttpResponse:
    if not can_operate(request.user):
        raise PermissionDenied
    parts = [Shown(part, _look(part)) for part in PARTS]
    context = {
        **admin.site.each_context(request),
        "title": "Health",
        "parts": parts,
        "troubles": [shown for shown in parts if shown.found.verdict != "good"],
        "now": timezone.now(),
    }
    return TemplateResponse(request, "admin/health.html", context)


def _look(part: Part) -> Found:
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(
                    f"SET LOCAL statement_timeout = {STATEMENT_MILLISECONDS};"
                    f" SET LOCAL lock_timeout = {STATEMENT_MILLISECONDS};"
                    # A transaction sees the sessions as they were when it first looked.
                    " SELECT pg_stat_clear_snapshot()"
                )
            return part.look()
    except Exception as error:
        logger.exception("the health page cannot show %r", part.name)
        return Found(UNKNOWN, note=f"This could not be read: {_reason(error)}.")


def _reason(error: Exception) -> str:
    """What databases and systems say is for people; of anything else the kind alone, and the log has the rest."""
    said = str(error).strip().splitlines() if isinstance(error, DatabaseError | OSError) else []
    return (said or [type(error).__name__])[0].rstrip(".")


urlpatterns = [path("", admin.site.admin_view(health), name="admin_health")]
