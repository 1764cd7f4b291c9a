"""Which guards are there when the database breaks a transition off, or another write keeps coming first?"""

from __future__ import annotations

from tests.mutation.guard import LIFE, RACES, Guard, T

TRIES = T + "tries.py"
CONFLICTS = "tests/outages/test_meet_a_conflict.py"
LOST = "tests/outages/test_lose_a_connection.py"
LOST_RACES = RACES + "test_lost_races.py"
RETRIED = 'frozenset({"40001", "40P01", "55P03"})'

OF_TRIES = (
    *(
        Guard(
            f"tried anew: {name}",
            TRIES,
            RETRIED,
            RETRIED.replace(f'"{code}"', '"XXXXX"'),
            (f"{CONFLICTS}::{test}",),
        )
        for name, code, test in (
            ("a serialization failure", "40001", "test_a_serialization_failure_is_tried_anew"),
            ("the victim of a deadlock", "40P01", "test_the_victim_of_a_deadlock_is_tried_anew"),
            ("who has waited too long for a lock", "55P03", "test_a_lock_that_was_not_to_be_had_is_tried_for_anew"),
        )
    ),
    Guard(
        "tried anew: nothing else",
        TRIES,
        "            if not lost and getattr(",
        "            if False and getattr(",
        (CONFLICTS + "::test_another_error_is_told_at_once",),
    ),
    Guard(
        "tried anew: what lost its connection",
        TRIES,
        "            lost = this.has_lost()\n",
        "            lost = False\n",
        (LOST + "::test_a_session_that_is_ended_is_followed_by_another[claim-before the lock]",),
    ),
    Guard(
        "the tries are so many",
        TRIES,
        "            if attempt == RETRIES or time",
        "            if time",
        (CONFLICTS + "::test_what_never_gets_through_is_answered_with_a_time_to_come_back",),
    ),
    Guard(
        "no try begins so late",
        TRIES,
        " or time.monotonic() > latest:\n",
        ":\n",
        (CONFLICTS + "::test_no_try_begins_when_the_time_is_over",),
    ),
    Guard(
        "whatever the database calls its goodbye, the answer is that it is away",
        TRIES,
        "                raise OperationalError(str(error)) from error",
        "                raise",
        (LOST + "::test_a_session_that_the_database_ended_for_idling_is_answered_as_lost",),
    ),
    Guard(
        "what was committed is not done again",
        TRIES,
        "or not self._was_committed():",
        "or True:",
        (LOST + "::test_a_commit_whose_answer_is_lost_is_neither_lost_nor_repeated[claim-after]",),
    ),
    Guard(
        "what was not committed is done again",
        TRIES,
        "or not self._was_committed():",
        "or False:",
        (LOST + "::test_a_commit_whose_answer_is_lost_is_neither_lost_nor_repeated[claim-before]",),
    ),
    Guard(
        "what follows a commit follows one whose answer was lost",
        TRIES,
        "            for hook in self.hooks:\n                hook()\n",
        "",
        (LOST + "::test_what_was_to_follow_the_commit_follows_it",),
    ),
    Guard(
        "a number that was given twice proves nothing",
        TRIES,
        "if not is_its_own or state not in",
        "if state not in",
        (LOST + "::test_after_a_crash_the_number_of_a_commit_proves_nothing",),
    ),
    Guard(
        "a commit of which nobody can say whether it was done is not done again",
        TRIES,
        "        except OutcomeUnknown:\n            raise\n",
        "",
        (LOST + "::test_after_a_crash_the_number_of_a_commit_proves_nothing",),
    ),
    Guard(
        "within another transaction only the whole is tried anew",
        T + "guard.py",
        "        if connection.in_atomic_block:\n",
        "        if False:\n",
        (CONFLICTS + "::test_within_another_transaction_only_the_whole_is_tried_anew",),
    ),
    Guard(
        "no job fails because the database broke off",
        "ci/lifecycle/fetch.py",
        "    except (OperationalError, InterfaceError):\n        raise",
        "    except NotImplementedError:\n        raise",
        (LOST + "::test_no_job_fails_because_the_database_broke_off_its_preparation",),
    ),
    Guard(
        "a runner's phase is written, or it is looked at again",
        T + "runner_phase.py",
        "    return changed == 1\n",
        "    return True\n",
        (RACES + "test_start_runner.py::test_retries_against_fresh_state_when_another_write_comes_between",),
    ),
    *(
        Guard(
            f"{name} is tried so often",
            path,
            old,
            old.replace("for _ in range(TRIES):", "while True:"),
            (f"{LOST_RACES}::{test}",),
        )
        for name, path, old, test in (
            (
                "running",
                T + "runner_phase.py",
                "    for _ in range(TRIES):\n        runner = Runner.objects.filter(pk=runner_id).first()",
                "test_a_phase_that_keeps_losing_is_a_conflict",
            ),
            (
                "the end of a runner",
                T + "runner_phase.py",
                "    for _ in range(TRIES):\n        runner = Runner.objects.filter(pk=runner_id, ephemeral=True)",
                "test_a_phase_that_keeps_losing_is_a_conflict",
            ),
            (
                "the removal of a runner",
                "ci/lifecycle/registration.py",
                "    for _ in range(TRIES):\n",
                "test_a_runner_that_keeps_getting_jobs_is_not_removed",
            ),
        )
    ),
    *(
        Guard(
            f"who is told of it: {name}",
            path,
            f'    raise Conflict("{text}")\n',
            f"    return {instead}\n",
            (f"{LOST_RACES}::{test}",),
        )
        for name, path, text, instead, test in (
            (
                "running that keeps losing",
                T + "runner_phase.py",
                "The runner kept changing while its job was starting: try again.",
                "None",
                "test_a_phase_that_keeps_losing_is_a_conflict",
            ),
            (
                "an end that keeps losing",
                T + "runner_phase.py",
                "The runner kept changing while it was ending: try again.",
                "False",
                "test_a_phase_that_keeps_losing_is_a_conflict",
            ),
            (
                "a removal that keeps losing",
                "ci/lifecycle/registration.py",
                "The runner kept taking jobs while it was being removed: pause it first.",
                "None",
                "test_a_runner_that_keeps_getting_jobs_is_not_removed",
            ),
        )
    ),
    Guard(
        "the end of a process looks again where its runner has just got a job",
        T + "process_end.py",
        "    for _ in range(TRIES):\n",
        "    for _ in range(1):\n",
        (LOST_RACES + "::test_a_process_that_is_gone_while_its_runner_gets_a_job_leaves_none_behind",),
    ),
    Guard(
        "a poll tries so many broken jobs",
        "ci/lifecycle/fetch.py",
        "        for _ in range(MAX_TRIES):\n",
        "        while True:\n",
        (LIFE + "test_claim.py::test_a_poll_tries_so_many_broken_jobs_and_the_next_goes_on",),
    ),
)
