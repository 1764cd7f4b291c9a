import os
import subprocess

import psycopg
import pytest
from django.db import connection
from django_q.models import OrmQ
from psycopg import sql

from forge.git import bare
from forge.git.live import LivePushes, live_push_ids
from forge.git.receive import repair, settle
from forge.git.stale_locks import remove_stale_locks
from forge.models import ZERO_SHA, Push, Repository
from tests.forge.git.conftest import PASSWORD
from tests.forge.git.slow_git import SlowGit
from tests.forge.git.worktree import environment


@pytest.fixture
def pushing(work):
    """A push that goes on while the test looks."""
    started = []

    def push(forge, ref="main"):
        work.commit({"a": "1"})
        process = subprocess.Popen(
            ["git", "push", forge.address("alice/widget", "alice", PASSWORD), ref],
            cwd=work.folder,
            env=environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield push
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def database():
    """Closes the database to new connections and ends the others: to the server it is gone."""

    class Database:
        name = connection.settings_dict["NAME"]

        def stop(self):
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                own = cursor.fetchone()[0]
            self._do("ALTER DATABASE {} ALLOW_CONNECTIONS false")
            self._do(
                f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{self.name}'"
                f" AND pid <> {own}"
            )

        def start(self):
            self._do("ALTER DATABASE {} ALLOW_CONNECTIONS true")

        def _do(self, statement):
            # From beside it: no session may close its own database.
            parameters = {**connection.get_connection_params(), "dbname": "postgres"}
            given = {name: parameters[name] for name in ("host", "port", "user", "dbname") if parameters.get(name)}
            with psycopg.connect(**given, autocommit=True) as session:
                session.execute(sql.SQL(statement).format(sql.Identifier(self.name)))

    found = Database()
    yield found
    found.start()


def states() -> list[str]:
    return list(Push.objects.order_by("id").values_list("state", flat=True))


def test_a_server_killed_between_git_and_the_database_settles_the_push_at_its_next_start(
    forges, repository, pushing, tmp_path, work
):
    slow = SlowGit(tmp_path / "bin", "after_git")
    forge = forges(PATH=slow.path)
    client = pushing(forge)
    git = slow.await_stop()
    assert states() == ["recorded"]
    assert bare.ref_sha(repository, "refs/heads/main") == work.git("rev-parse", "HEAD")
    forge.kill()
    slow.release()
    git.wait(60)
    assert client.wait(60) != 0
    assert states() == ["recorded"] and not OrmQ.objects.exists()

    forge.start()

    assert states() == ["settled"]
    assert [task.task["args"] for task in OrmQ.objects.all()] == [(Push.objects.get().pk,)]
    assert repair() == 0 and OrmQ.objects.count() == 1


def test_a_git_that_outlives_its_server_is_waited_for(forges, repository, pushing, tmp_path):
    slow = SlowGit(tmp_path / "bin", "before_git")
    forge = forges(PATH=slow.path)
    pushing(forge)
    git = slow.await_stop()
    forge.kill()
    forge.start()
    # The ref is not moved yet, and yet it will be: whoever judged now would lose the push.
    assert states() == ["recorded"] and bare.is_empty(repository)
    slow.release()
    git.wait(60)
    assert not bare.is_empty(repository)
    assert repair() == 1 and states() == ["settled"] and OrmQ.objects.count() == 1


def test_a_push_whose_git_died_with_the_server_is_refused(forges, repository, pushing, tmp_path):
    slow = SlowGit(tmp_path / "bin", "before_git")
    forge = forges(PATH=slow.path)
    pushing(forge)
    git = slow.await_stop()
    forge.kill()
    git.kill()
    git.wait(60)
    forge.start()
    assert states() == ["refused"] and not OrmQ.objects.exists() and bare.is_empty(repository)


def test_a_push_while_the_database_is_down_is_told_so_and_moves_nothing(forges, repository, work, database):
    work.commit({"a": "1"})
    forge = forges()
    database.stop()
    done = work.attempt("push", forge.address("alice/widget", "alice", PASSWORD), "main")
    assert done.returncode == 128
    assert "remote: The forge cannot reach its database. Nothing was changed; try again in a moment." in done.stderr
    database.start()
    assert bare.is_empty(repository) and states() == []
    assert work.attempt("push", forge.address("alice/widget", "alice", PASSWORD), "main").returncode == 0


def test_a_database_lost_after_the_refs_were_asked_for_is_told_in_gits_words(
    forges, repository, pushing, tmp_path, database
):
    slow = SlowGit(tmp_path / "bin", "advertising")
    client = pushing(forges(PATH=slow.path))
    slow.await_stop()
    database.stop()
    slow.release()
    stderr = client.communicate(timeout=60)[1]
    assert client.returncode == 1
    assert "! [remote rejected] main -> main (The forge cannot reach its database. Nothing was changed" in stderr
    database.start()
    assert bare.is_empty(repository) and states() == []


def test_a_database_lost_while_git_receives_keeps_the_push_for_later(forges, repository, pushing, tmp_path, database):
    slow = SlowGit(tmp_path / "bin", "after_git")
    client = pushing(forges(PATH=slow.path))
    slow.await_stop()
    database.stop()
    slow.release()
    stderr = client.communicate(timeout=60)[1]
    assert client.returncode == 0
    assert "remote: The refs are moved, but the forge cannot reach its database just now. Nothing is lost" in stderr
    database.start()
    assert states() == ["recorded"]
    assert repair() == 1 and states() == ["settled"] and OrmQ.objects.count() == 1


@pytest.fixture
def recorded(filled, alice):
    """A row as a dead process leaves it."""

    def recorded(before, after, *, ref="refs/heads/main", state="recorded"):
        settled_at = None if state == "recorded" else filled.created_at
        return Push.objects.create(
            repository=filled, pusher=alice, ref=ref, before=before, after=after, state=state, settled_at=settled_at
        )

    return recorded


def test_a_chain_of_dead_pushes_is_settled_whole(filled, recorded, work):
    tip = work.git("rev-parse", "HEAD")
    recorded(ZERO_SHA, "1" * 40)
    recorded("1" * 40, tip)
    assert repair() == 2 and states() == ["settled", "settled"]


def test_a_dead_push_that_was_repeated_is_settled_once(filled, recorded, work):
    tip = work.git("rev-parse", "HEAD")
    recorded(ZERO_SHA, tip)
    recorded(ZERO_SHA, tip)
    assert repair() == 2 and states() == ["refused", "settled"]


@pytest.mark.parametrize("decide", ["repair", "settle"])
def test_a_repeat_of_a_push_that_was_settled_in_time_is_refused(filled, recorded, work, decide):
    tip = work.git("rev-parse", "HEAD")
    recorded(ZERO_SHA, tip, state="settled")
    repeat = recorded(ZERO_SHA, tip)
    if decide == "repair":
        assert repair() == 1
    else:
        assert settle(repository=filled, push_ids=[repeat.pk], outcomes={}) == []
    assert states() == ["settled", "refused"] and not OrmQ.objects.exists()


def test_a_dead_repeat_is_refused_also_where_the_next_push_began_from_there(filled, recorded, work):
    recorded(ZERO_SHA, "1" * 40, state="settled")
    recorded(ZERO_SHA, "1" * 40)
    recorded("1" * 40, work.git("rev-parse", "HEAD"), state="settled")
    assert repair() == 1 and states() == ["settled", "refused", "settled"]


def test_a_dead_push_that_leads_back_to_where_an_older_one_led_is_settled(filled, recorded, work):
    tip = work.git("rev-parse", "HEAD")
    recorded(ZERO_SHA, tip, state="settled")
    recorded(tip, ZERO_SHA, state="settled")
    recorded(ZERO_SHA, tip)
    assert repair() == 1 and states() == ["settled", "settled", "settled"]


def test_a_dead_deletion_is_judged_by_the_missing_ref(filled, recorded, work):
    tip = work.git("rev-parse", "HEAD")
    recorded(tip, ZERO_SHA)
    recorded(tip, ZERO_SHA, ref="refs/heads/gone")
    assert repair() == 2 and states() == ["refused", "settled"]


def test_what_a_living_process_holds_is_left_alone(filled, recorded, work):
    tip = work.git("rev-parse", "HEAD")
    dead, held = recorded(ZERO_SHA, "1" * 40), recorded("1" * 40, tip)
    with LivePushes() as live:
        live.list([held.pk])
        assert live_push_ids() == {held.pk}
        # The dead one waits too: how it ended shows only when the one after it is decided.
        assert repair() == 0 and states() == ["recorded", "recorded"]
    assert live_push_ids() == set()
    assert repair() == 2 and states() == ["settled", "settled"]
    assert dead.pk < held.pk


def test_settling_twice_enqueues_once(filled, recorded, work):
    row = recorded(ZERO_SHA, work.git("rev-parse", "HEAD"))
    assert settle(repository=filled, push_ids=[row.pk], outcomes={}) == [row.pk]
    assert settle(repository=filled, push_ids=[row.pk], outcomes={}) == []
    assert OrmQ.objects.count() == 1


def test_row_and_task_stand_or_fall_together(filled, recorded, work, monkeypatch):
    row = recorded(ZERO_SHA, work.git("rev-parse", "HEAD"))

    def fail(*arguments):
        raise RuntimeError("no queue")

    monkeypatch.setattr("forge.git.receive.async_task", fail)
    with pytest.raises(RuntimeError, match="no queue"):
        settle(repository=filled, push_ids=[row.pk], outcomes={})
    assert states() == ["recorded"] and Repository.objects.get().pushed_at is None


def test_many_dead_pushes_are_decided_in_batches(filled, recorded, work, monkeypatch):
    monkeypatch.setattr("forge.git.receive._BATCH", 2)
    tip = work.git("rev-parse", "HEAD")
    for number in range(5):
        recorded(ZERO_SHA, tip, ref=f"refs/heads/x{number}")
    assert repair() == 5 and states() == ["refused"] * 5


def test_a_repository_that_cannot_be_read_keeps_its_rows_and_stops_no_other(filled, recorded, work, alice):
    tip = work.git("rev-parse", "HEAD")
    recorded(ZERO_SHA, tip)
    broken = Repository.objects.create(owner=alice, name="broken")
    Push.objects.create(repository=broken, ref="refs/heads/main", before=ZERO_SHA, after=tip)
    assert repair() == 1 and states() == ["settled", "recorded"]


LOCKS = ["refs/heads/main.lock", "packed-refs.lock"]


def left_locked(repository: Repository) -> list[str]:
    return [name for name in LOCKS if (repository.path / name).exists()]


def lock_refs(repository: Repository) -> None:
    """As a git does that is killed before it has moved the ref."""
    for name in LOCKS:
        path = repository.path / name
        path.touch()
        os.utime(path, (path.stat().st_mtime - 5,) * 2)


def test_the_locks_of_a_git_killed_with_its_server_hinder_no_later_push(forges, filled, recorded, work):
    tip = work.commit({"b": "1"})
    recorded(bare.ref_sha(filled, "refs/heads/main"), tip)
    lock_refs(filled)
    assert repair() == 1 and states() == ["refused"]
    assert left_locked(filled) == []
    done = work.attempt("push", forges().address("alice/widget", "alice", PASSWORD), "main")
    assert done.returncode == 0, done.stderr


def test_the_locks_of_a_git_killed_alone_hinder_no_later_push(forges, repository, pushing, tmp_path, work):
    slow = SlowGit(tmp_path / "bin", "before_git")
    forge = forges(PATH=slow.path)
    client = pushing(forge)
    git = slow.await_stop()
    lock_refs(repository)
    git.kill()
    assert client.wait(60) != 0
    assert states() == ["refused"] and left_locked(repository) == []


def test_the_locks_of_a_living_push_are_left_alone(filled, recorded, work):
    tip = work.git("rev-parse", "HEAD")
    recorded(ZERO_SHA, tip)
    same, other = recorded(tip, "1" * 40), recorded(ZERO_SHA, tip, ref="refs/heads/other")
    lock_refs(filled)
    with LivePushes() as live:
        live.list([same.pk, other.pk])
        repair()
        assert left_locked(filled) == LOCKS
    with LivePushes() as live:
        live.list([other.pk])
        repair()
        assert left_locked(filled) == ["packed-refs.lock"]


def test_the_locks_of_a_living_push_outlive_another_whose_git_was_killed(filled, recorded, work):
    tip = work.git("rev-parse", "HEAD")
    mine, other = recorded(tip, "1" * 40), recorded(tip, "2" * 40)
    lock_refs(filled)
    with LivePushes() as live:
        live.list([other.pk])
        settle(repository=filled, push_ids=[mine.pk], outcomes={})
        assert left_locked(filled) == LOCKS
    settle(repository=filled, push_ids=[other.pk], outcomes={})
    assert left_locked(filled) == []


def test_a_lock_made_after_the_look_at_the_living_is_left_alone(filled):
    lock_refs(filled)
    before = (filled.path / LOCKS[0]).stat().st_mtime
    remove_stale_locks(filled, ["refs/heads/main"], before=before)
    assert left_locked(filled) == LOCKS
    remove_stale_locks(filled, ["refs/heads/main"], before=before + 1)
    assert left_locked(filled) == LOCKS[1:]
