"""What may make this instance slow or still, and how is it now? Looks that cost little however much there is."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Count, Min
from django.utils import timezone
from django_q.models import OrmQ

from ci.lifecycle.database_sessions import Transaction, idle_transactions, long_transactions
from ci.lifecycle.leading import SCALER_LOCK
from ci.lifecycle.watch import LEADER_LOCK

GOOD, LOOK = "good", "look"
_IDLE_SECONDS = 2.0
_TASK_SECONDS = 60.0
_QUEUED_SECONDS = 600.0
# A leader asks the database every ten seconds at the least.
_LEADER_SECONDS = 60.0
_OLD_SNAPSHOT = 1_000_000
_FREE_SHARE, _FREE_BYTES = 0.05, 2 * 1024**3
_SESSION_HEADINGS = ("Process", "Program and user", "State", "Open for", "Waits for", "Statement")
_TABLES = [
    *("ci_job", "ci_run", "ci_step", "ci_heartbeat", "ci_runner", "ci_log", "ci_logchunk", "ci_event"),
    "django_q_ormq",
]
# The head of each label set's queue, through its index: however many jobs wait behind it.
HEADS = """
    SELECT labels, head.id, extract(epoch FROM now() - head.queued_at)::float8 FROM ci_labelset
    CROSS JOIN LATERAL (
        SELECT id, queued_at FROM ci_job WHERE label_set_id = ci_labelset.id AND state = 'queued'
        ORDER BY priority DESC, queued_at, id LIMIT 1
    ) AS head ORDER BY 3 DESC, 2 LIMIT 10
"""
_LIMITS = {
    "autovacuum": "on",
    "idle_in_transaction_session_timeout": "above 0",
    "lock_timeout": "above 0",
    "statement_timeout": "above 0",
}


@dataclass(frozen=True)
class Found:
    """`rows`: of as many texts as the part has headings."""

    verdict: str
    rows: Sequence[Sequence[str]] = ()
    note: str = ""


@dataclass(frozen=True)
class Part:
    name: str
    meaning: str
    advice: str
    headings: Sequence[str]
    look: Callable[[], Found]


def _long() -> Found:
    found = long_transactions()
    note = f"None is older than {duration(settings.LONG_TRANSACTION_SECONDS)}."
    if not _all("SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')")[0][0]:
        note += " Sessions of other database users cannot be seen: grant ours the role pg_read_all_stats."
    return Found(LOOK if found else GOOD, _sessions(found), "" if found else note)


def _idle() -> Found:
    found = idle_transactions(_IDLE_SECONDS)
    return Found(LOOK if found else GOOD, _sessions(found), "" if found else "None.")


def _sessions(found: Sequence[Transaction]) -> list[list[str]]:
    return [
        [
            *(str(one.pid), one.who, f"{one.state} for {duration(one.in_state)}", duration(one.age)),
            *(one.waits_for or "–", one.statement or "–"),
        ]
        for one in found
    ]


def _snapshots() -> Found:
    rows = _all(
        "SELECT 'replication slot', slot_name, CASE WHEN active THEN 'in use' ELSE 'in nobody''s use' END,"
        " coalesce(greatest(age(xmin), age(catalog_xmin)), 0) FROM pg_replication_slots"
        " UNION ALL SELECT 'prepared transaction', left(gid, 60), 'since ' || date_trunc('second', prepared)::text,"
        " age(transaction) FROM pg_prepared_xacts WHERE database = current_database()"
        " UNION ALL (SELECT 'session', pid::text, left(application_name, 60), age(backend_xmin) FROM pg_stat_activity"
        " WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() ORDER BY 4 DESC LIMIT 1)"
        " ORDER BY 4 DESC, 1, 2 LIMIT 20"
    )
    # Whoever prepares a transaction forgets it sooner or later; the others matter once they are old.
    bad = any(kind == "prepared transaction" or age > _OLD_SNAPSHOT for kind, _, _, age in rows)
    shown = [[kind, name, state, f"{age:,} transactions"] for kind, name, state, age in rows]
    return Found(LOOK if bad else GOOD, shown, "" if rows else "None.")


def _dead_rows() -> Found:
    rows = _all(
        "SELECT relname, n_live_tup, n_dead_tup, autovacuum_count,"
        " extract(epoch FROM now() - greatest(last_autovacuum, last_vacuum))::float8"
        " FROM pg_stat_user_tables WHERE schemaname = current_schema() AND relname = ANY(%s) ORDER BY relname",
        [_TABLES],
    )
    bad = any(dead > 10_000 and dead > live / 5 for _, live, dead, _, _ in rows)
    return Found(
        LOOK if bad else GOOD,
        [
            [name, f"{live:,}", f"{dead:,}", f"{count:,}", "never" if age is None else f"{duration(age)} ago"]
            for name, live, dead, count, age in rows
        ],
    )


def _limits() -> Found:
    # As the session began: this page sets tighter ones for itself.
    rows = _all(
        "SELECT name, concat_ws(' ', reset_val, unit) FROM pg_settings WHERE name = ANY(%s) ORDER BY name", [[*_LIMITS]]
    )
    bad = any(value in ("0 ms", "off") for _, value in rows)
    return Found(LOOK if bad else GOOD, [[name, value, _LIMITS[name]] for name, value in rows])


def _tasks() -> Found:
    if "orm" not in settings.Q_CLUSTER:
        return Found(GOOD, note="They are in Redis, which this page does not look into.")
    now = timezone.now()
    waiting = OrmQ.objects.filter(lock__lte=now).aggregate(count=Count("pk"), since=Min("lock"))
    if waiting["since"] is None:
        return Found(GOOD, note="None waits.")
    age = (now - waiting["since"]).total_seconds()
    return Found(LOOK if age > _TASK_SECONDS else GOOD, [[f"{waiting['count']:,}", duration(age)]])


def _jobs() -> Found:
    rows = _all(HEADS)
    bad = any(age > _QUEUED_SECONDS for _, _, age in rows)
    shown = [[", ".join(labels), str(job), duration(age)] for labels, job, age in rows]
    return Found(LOOK if bad else GOOD, shown, "" if rows else "None waits.")


def _leaders() -> Found:
    rows = _all(
        "SELECT wanted.part, a.application_name, coalesce(host(a.client_addr), 'this machine'),"
        " extract(epoch FROM now() - a.backend_start)::float8,"
        " (SELECT extract(epoch FROM clock_timestamp() - max(w.state_change))::float8 FROM pg_stat_activity AS w"
        "  WHERE w.application_name = 'forge ' || wanted.part AND w.datname = current_database())"
        " FROM (VALUES ('watch', %s::bigint), ('scale', %s::bigint)) AS wanted (part, lock)"
        " LEFT JOIN pg_locks AS l ON l.locktype = 'advisory' AND l.granted AND l.objsubid = 1"
        "  AND l.classid::bigint = wanted.lock >> 32 AND l.objid::bigint = wanted.lock & 4294967295"
        "  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        " LEFT JOIN pg_stat_activity AS a USING (pid) ORDER BY wanted.part DESC",
        [LEADER_LOCK, SCALER_LOCK],
    )
    bad = any(session is None or worked is None or worked > _LEADER_SECONDS for _, session, _, _, worked in rows)
    return Found(
        LOOK if bad else GOOD,
        [
            [
                *(part, session or "nobody leads", where if session else "–"),
                *("–" if lasts is None else duration(lasts), "–" if worked is None else f"{duration(worked)} ago"),
            ]
            for part, session, where, lasts, worked in rows
        ],
    )


def _connections() -> Found:
    rows = _all(
        "SELECT coalesce(nullif(regexp_replace(application_name, '^(forge [a-z]+) [0-9]+$', '\\1'), ''), '(no name)'),"
        " count(*), count(*) FILTER (WHERE state = 'active'), count(*) FILTER (WHERE state LIKE 'idle in%%')"
        " FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = current_database()"
        " GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT %s",
        [20],
    )
    used, most = _all(
        "SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),"
        " current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"
    )[0]
    hubs = sum(count for name, count, _, _ in rows if name == "forge hub")
    note = f"The whole server: {used:,} of {most:,}. Web processes that listen for jobs (forge hub): {hubs}."
    return Found(LOOK if used > most * 0.8 or not hubs else GOOD, [[str(value) for value in row] for row in rows], note)


def _disk() -> Found:
    usage = shutil.disk_usage(settings.DATA_DIR)
    bad = usage.free < _FREE_BYTES or usage.free < usage.total * _FREE_SHARE
    row = [str(settings.DATA_DIR), *(f"{size / 1024**3:,.1f} GiB" for size in (usage.total, usage.free))]
    return Found(LOOK if bad else GOOD, [row])


def _all(statement: str, values: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def duration(seconds: float) -> str:
    for size, word in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {word}"
    return f"{max(seconds, 0):.0f} s"


PARTS = [
    Part(
        "Long transactions",
        "While a transaction is open, no row that was changed since can be cleaned away: every claim gets slower.",
        "Find the program by its name and end it there, or its session in psql: SELECT pg_terminate_backend(process).",
        _SESSION_HEADINGS,
        _long,
    ),
    Part(
        "Sessions idle in transaction",
        "They hold locks and old rows and do nothing. PostgreSQL ends those of Forge CI after a minute.",
        "A debugger, a psql with BEGIN, a script that waits for something: commit, or end it.",
        _SESSION_HEADINGS,
        _idle,
    ),
    Part(
        "What else keeps old rows",
        "Replication slots and prepared transactions keep dead rows across restarts, and no time limit ends them.",
        "Drop slots that nobody uses (pg_drop_replication_slot), end prepared transactions (ROLLBACK PREPARED).",
        ("Kind", "Name", "State", "Age"),
        _snapshots,
    ),
    Part(
        "Dead rows",
        "Each change leaves a dead row, until autovacuum removes it. Many of them make the queue slow to read.",
        "Where they only grow, look at the three parts above, and whether autovacuum is on; then VACUUM the table.",
        ("Table", "Rows", "Dead rows", "Autovacuums", "Last vacuum"),
        _dead_rows,
    ),
    Part(
        "Limits of sessions",
        "Whoever forgets a transaction, waits for a lock or asks for too much is ended by the database.",
        "Forge CI sets its own with each connection: a pooler between may drop them. Set them for its database role.",
        ("Setting", "Value", "Should be"),
        _limits,
    ),
    Part(
        "Oldest task",
        "Pushes become runs, and artifacts are removed, by tasks. They should wait for less than a second.",
        "Look whether manage.py qcluster runs and what its log says; give it more with FORGE_TASK_WORKERS.",
        ("Tasks that wait", "The oldest waits for"),
        _tasks,
    ),
    Part(
        "Jobs at the head of their queues",
        "The next job of each set of labels, those that have waited longest first.",
        "Add runners that have all of these labels, or correct runs-on.",
        ("runs-on", "Job", "Waits for"),
        _jobs,
    ),
    Part(
        "Leaders",
        "One process acts on deadlines (watch), one looks after runner sets (scale); others stand by.",
        "Where nobody leads, start manage.py watch or scale; where one has not worked lately, look at its log.",
        ("Part", "Who leads", "On", "Leads for", "Last worked"),
        _leaders,
    ),
    Part(
        "Database connections",
        "Each part has its own. When none is left, requests fail. Without a forge hub, queued jobs are found late.",
        "Raise max_connections of the server, or lower FORGE_WEB_PROCESSES or FORGE_WEB_THREADS.",
        ("Program", "Connections", "Active", "Idle in transaction"),
        _connections,
    ),
    Part(
        "Disk of the data folder",
        "Repositories, logs, artifacts and caches, and the database that comes along, all stop when it is full.",
        "Make room, shorten how long artifacts and caches are kept, or give the folder a larger disk.",
        ("Folder", "Size", "Free"),
        _disk,
    ),
]
