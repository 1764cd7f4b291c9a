"""When does a schedule fire, and which ones are refused?"""

from datetime import UTC, datetime

import pytest

from ci.workflow.schedule import ScheduleError, check, next_time

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("cron", "zone", "expected"),
    [
        ("0 6 * * *", None, datetime(2026, 12, 1, 6, 0, tzinfo=UTC)),
        ("*/5 * * * *", None, datetime(2026, 11, 30, 12, 5, tzinfo=UTC)),
        ("0 6 * * MON-FRI", "America/New_York", datetime(2026, 12, 1, 11, 0, tzinfo=UTC)),
        ("0 12 * * *", None, datetime(2026, 12, 1, 12, 0, tzinfo=UTC)),
        ("0 0 29 2 *", None, datetime(2028, 2, 29, 0, 0, tzinfo=UTC)),
        ("30 8  1 JUL *", "Europe/London", datetime(2027, 7, 1, 7, 30, tzinfo=UTC)),
    ],
)
def test_the_next_time_is_later_and_in_utc(cron: str, zone: str | None, expected: datetime) -> None:
    check(cron, zone)
    found = next_time(cron, zone, NOON)
    assert found == expected
    assert found.utcoffset() is not None and not found.utcoffset()


@pytest.mark.parametrize(
    "cron", ["0 0 * * 0,3", "59 23 * * *", "0 */6 * * *", "58 0 * * *", "0,5,55 * * * *", "0 0 1 1 7"]
)
def test_good_ones_pass(cron: str) -> None:
    check(cron)


@pytest.mark.parametrize(
    "cron",
    [
        "",
        "* * * *",
        "0 0 * * * *",
        "@daily",
        "60 * * * *",
        "0 0 L * *",
        "0 0 * * 1#2",
        "x" * 500,
        "0 0 * * 8",
        "é * * * *",
    ],
)
def test_bad_ones_are_refused(cron: str) -> None:
    with pytest.raises(ScheduleError, match="Invalid cron expression"):
        check(cron)


def test_a_day_that_never_comes_is_refused() -> None:
    with pytest.raises(ScheduleError, match="Bad day-of-month"):
        check("0 0 31 2 *")


@pytest.mark.parametrize("cron", ["* * * * *", "*/4 * * * *", "0,1 5 * * *", "58,1 * * * *"])
def test_more_often_than_every_five_minutes_is_refused(cron: str) -> None:
    with pytest.raises(ScheduleError, match="at most every 5 minutes"):
        check(cron)


@pytest.mark.parametrize("zone", ["Mars", "../../etc/passwd", "/etc/localtime", "a\0b", "x" * 5000, "Europe"])
def test_an_unknown_time_zone_is_refused(zone: str) -> None:
    with pytest.raises(ScheduleError, match="Unknown time zone"):
        check("0 0 * * *", zone)
