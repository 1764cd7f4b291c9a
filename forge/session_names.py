"""Who asks the database? What PostgreSQL calls the sessions of each part, so that an operator sees whose each is."""

from django.db import connections


def name_sessions(part: str) -> None:
    """Call the sessions that this process opens from now on, in any thread, `forge PART` (pg_stat_activity)."""
    connections.settings["default"].setdefault("OPTIONS", {})["application_name"] = f"forge {part}"
