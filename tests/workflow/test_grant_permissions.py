"""Which permissions does a job's token have?"""

from ci.workflow.permissions import NAMES, effective


def granted(levels: dict[str, str]) -> dict[str, str]:
    assert set(levels) == set(NAMES)
    return {name: level for name, level in levels.items() if level != "none"}


def test_the_jobs_own_permissions_count_before_the_workflows() -> None:
    assert granted(effective({"contents": "read"}, {"issues": "write"}, "write-all")) == {"issues": "write"}
    assert granted(effective({"contents": "read"}, None, "write-all")) == {"contents": "read"}


def test_what_is_not_named_is_none_as_soon_as_one_is() -> None:
    assert granted(effective({}, None, "write-all")) == {}
    assert granted(effective(None, None, {"contents": "read"})) == {"contents": "read"}
    assert granted(effective(None, None)) == {}


def test_the_words_for_all_reach_every_permission_as_far_as_it_goes() -> None:
    everything = effective("write-all", None)
    assert everything["contents"] == everything["id-token"] == "write"
    assert everything["models"] == "read"
    assert set(effective("read-all", None).values()) == {"read"}


def test_a_called_workflow_never_gets_more_than_its_caller() -> None:
    caller = effective({"contents": "read", "issues": "write"}, None)
    assert granted(effective(None, {"contents": "write", "checks": "read"}, ceiling=caller)) == {"contents": "read"}
    assert granted(effective(None, None, caller, ceiling=caller)) == {"contents": "read", "issues": "write"}
