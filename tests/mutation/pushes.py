"""Which guards have pushes, repositories and the names that are given once?"""

from __future__ import annotations

from tests.mutation.guard import RACES, Guard, T

RECEIVE = "forge/git/receive.py"
REPOSITORIES = "forge/repositories.py"
PLANS = "ci/lifecycle/pushes.py"
SETS = "ci/lifecycle/runner_sets.py"
RACING = RACES + "test_pushes.py"
NAMES = RACES + "test_taken_names.py"
DELETING = RACES + "test_delete_repository.py"
TAKEN = "    except IntegrityError as error:\n"

OF_PUSHES = (
    Guard(
        "the lock of a repository whose push is settled",
        RECEIVE,
        "        Repository.objects.select_for_update(no_key=True).filter(pk=repository.pk).first()\n",
        "",
        (RACING + "::test_a_push_is_settled_by_one_of_two", DELETING),
    ),
    Guard(
        "a push is settled once",
        RECEIVE,
        "filter(pk__in=[row.pk for row in rows], state=Push.State.RECORDED)",
        "filter(pk__in=[row.pk for row in rows])",
        (RACING + "::test_a_push_is_settled_by_one_of_two",),
    ),
    Guard(
        "a push is settled with its task",
        RECEIVE,
        "    with transaction.atomic():\n        # Before",
        "    if True:\n        # Before",
        ("tests/forge/git/test_settle_after_a_crash.py::test_row_and_task_stand_or_fall_together",),
    ),
    Guard(
        "when a push was planned is noted once",
        PLANS,
        "filter(pk=push.pk, planned_at=None).update",
        "filter(pk=push.pk).update",
        (RACING + "::test_when_a_push_was_planned_is_noted_once",),
    ),
    Guard(
        "only what was settled is planned",
        PLANS,
        "    if push is None or push.state != Push.State.SETTLED:\n",
        "    if push is None:\n",
        ("tests/lifecycle/test_plan_push.py::test_a_push_that_was_not_settled_starts_nothing",),
    ),
    Guard(
        "the lock of a repository whose default branch is remembered",
        "ci/lifecycle/workflow_files.py",
        'Repository.objects.select_for_update(no_key=True, of=("self",)).filter',
        "Repository.objects.filter",
        (RACING + "::test_what_a_later_push_ended_is_not_remembered_again",),
    ),
    Guard(
        "the lock of a repository that is deleted",
        REPOSITORIES,
        "        Repository.objects.select_for_update(no_key=True).filter(pk=repository.pk).first()\n",
        "",
        (DELETING,),
    ),
    Guard(
        "a default branch is changed in one transaction",
        REPOSITORIES,
        "    with transaction.atomic():\n        Repository.objects.filter(pk=repository.pk).update(default_branch",
        "    if True:\n        Repository.objects.filter(pk=repository.pk).update(default_branch",
        (RACING + "::test_the_row_and_git_name_the_same_default_branch",),
    ),
    Guard(
        "a new repository whose name is taken meanwhile",
        REPOSITORIES,
        TAKEN + "        _remove_folder",
        "    except NotImplementedError as error:\n        _remove_folder",
        (NAMES + "::test_of_two_new_repositories_of_a_name_one_is_told",),
    ),
    Guard(
        "a repository whose new name is taken meanwhile",
        REPOSITORIES,
        TAKEN + "        repository.name",
        "    except NotImplementedError as error:\n        repository.name",
        (NAMES + "::test_a_repository_is_not_renamed_to_what_another_is_called_meanwhile",),
    ),
    Guard(
        "a new runner set whose name is taken meanwhile",
        SETS,
        "            made.save(force_insert=True)\n    except IntegrityError:",
        "            made.save(force_insert=True)\n    except NotImplementedError:",
        (NAMES + "::test_of_two_new_runner_sets_of_a_name_one_is_told",),
    ),
    Guard(
        "a runner set whose new name is taken meanwhile",
        SETS,
        "            return int(guarded.update(**values))\n    except IntegrityError:",
        "            return int(guarded.update(**values))\n    except NotImplementedError:",
        (NAMES + "::test_a_runner_set_is_not_renamed_to_what_another_is_called_meanwhile",),
    ),
    Guard(
        "an environment that is made meanwhile is found",
        "ci/lifecycle/environments.py",
        "    except IntegrityError:  # somebody",
        "    except NotImplementedError:  # somebody",
        (NAMES + "::test_an_environment_is_made_by_one_of_two_who_name_it_first",),
    ),
    Guard(
        "an environment that is made meanwhile does not break the transaction",
        "ci/lifecycle/environments.py",
        "        with transaction.atomic():\n            return Environment",
        "        if True:\n            return Environment",
        (NAMES + "::test_an_environment_is_made_by_one_of_two_who_name_it_first",),
    ),
    Guard(
        "the lock of a runner that is renewed",
        "ci/lifecycle/foreign_runners.py",
        "    runner = lock_runner(runner.pk)\n",
        "",
        (NAMES + "::test_a_runner_that_is_removed_while_it_is_renewed_is_renewed_first",),
    ),
    Guard(
        "the lock of who replaces the signing key",
        "ci/lifecycle/signing_keys.py",
        "    _lock()\n    now = ",
        "    now = ",
        (RACES + "test_locks.py::test_two_who_replace_the_signing_key_replace_it_twice",),
    ),
    Guard(
        "a signing key that was made meanwhile is the one",
        "ci/lifecycle/signing_keys.py",
        "        return _in_use() or _make()\n",
        "        return _make()\n",
        (RACES + "test_locks.py::test_two_who_need_the_first_signing_key_make_one",),
    ),
    Guard(
        "who comes last into a concurrency group is the newest there",
        T + "create_run.py",
        "        lock_group(group.pk)\n",
        "        pass\n",
        (RACES + "test_groups.py::test_who_comes_last_into_a_group_is_the_newest_there",),
    ),
    Guard(
        "who comes while a concurrency group is settled is left to the next settling",
        T + "concurrency.py",
        "Job.objects.filter(waits_for(group.pk), run__in=locked)",
        "Job.objects.filter(waits_for(group.pk))",
        (RACES + "test_groups.py::test_who_comes_while_a_group_is_settled_is_left_to_the_next_settling",),
    ),
)
