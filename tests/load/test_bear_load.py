"""Does the product bear many runners that work many short jobs at once? `python -m tests.bench load` asks for more."""

from __future__ import annotations

from tests.bench.load import LOST_SECONDS, bear, check_ends, check_logs, loaded, longest_missed


def test_many_runners_end_each_job_once_with_its_whole_log_and_meet_no_error() -> None:
    with loaded() as load:
        figures = bear(load, runners=40, jobs=240, patience=300)
        print("\n".join(figures.lines()))
        assert figures.server_errors == 0, figures.problems
        assert figures.repeats == 0, figures.problems
        assert set(figures.statuses) <= {"200", "204"}, figures.problems
        assert figures.deadlocks == 0, figures.errors
        assert check_ends(load, figures) == []
        assert check_logs(load, sorted(figures.ended)) == []
        assert figures.longest_missed < LOST_SECONDS, figures.lines()


def test_a_poll_that_was_not_woken_is_seen() -> None:
    linux, arm = ["linux"], ["arm"]
    # The second job lay there from 2 to 7, while the poll of runner 0 waited from 1 on; runner 1 could not take it.
    jobs = [(linux, 0.0, 0.5), (linux, 2.0, 7.0), (arm, 3.0, 3.5)]
    polls = [(0, 0.0, 0.5, 1), (0, 1.0, 7.0, 2), (1, 0.0, 3.5, 3)]
    assert longest_missed(jobs, polls, [linux, arm]) == 5.0


def test_a_poll_beside_others_that_take_one_job_after_the_other_is_not_blamed() -> None:
    linux = ["linux"]
    jobs = [(linux, 0.0, float(second)) for second in range(1, 10)]
    polls = [(0, 0.0, 9.0, 9), *((1, second - 1.0, float(second), second) for second in range(1, 9))]
    assert longest_missed(jobs, polls, [linux, linux]) == 1.0
