"""What time is it at the forge?"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

# The Date header counts whole seconds, and the answer took a while: less than this is no difference.
TOLERANCE = 3.0


def skew(date_header: str | None) -> float:
    """Seconds the forge's clock is ahead of this machine's, by the Date header of an answer."""
    try:
        ahead = (parsedate_to_datetime(date_header or "") - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return 0.0
    return ahead if abs(ahead) > TOLERANCE else 0.0


def seconds_until(moment: object, *, now: object, ahead: float) -> float | None:
    """Seconds until an ISO 8601 time of the forge; None where there is none.

    `now` is the forge's own word for the present; without it, its clock is taken to be `ahead` of ours.
    """
    if not isinstance(moment, str):
        return None
    try:
        end = datetime.fromisoformat(moment)
        if isinstance(now, str):
            return (end - datetime.fromisoformat(now)).total_seconds()
        return (end - datetime.now(UTC)).total_seconds() - ahead
    except (ValueError, TypeError):
        return None
