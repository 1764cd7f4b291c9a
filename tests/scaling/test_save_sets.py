"""save_runner_set: a template that its launcher cannot use is refused when it is written, not when a runner starts."""

from typing import Any

import pytest

from ci.lifecycle.errors import InvalidInput
from ci.lifecycle.runner_sets import save_runner_set as save
from ci.models import RunnerSet
from tests.playground import Playground

FIELDS = {"name": "pool", "labels": ["linux"], "launcher": "local", "maximum": 2}


def test_a_template_of_another_launcher_is_refused(playground: Playground) -> None:
    given = {**FIELDS, "template": {"image": "debian:12"}}
    with pytest.raises(InvalidInput, match="'image' is no key for local processes"):
        save(runner_set_id=None, fields=given, version=None, actor=playground.operator)
    assert not RunnerSet.objects.exists()


def test_a_change_of_the_launcher_asks_for_a_template_of_its_own(playground: Playground) -> None:
    given = {**FIELDS, "template": {"nice": 5}}
    pool = save(runner_set_id=None, fields=given, version=None, actor=playground.operator)
    with pytest.raises(InvalidInput, match="template"):
        save(runner_set_id=pool.pk, fields={"launcher": "docker"}, version=0, actor=playground.operator)
    changed = save(runner_set_id=pool.pk, fields={"maximum": 3}, version=0, actor=playground.operator)
    assert (changed.maximum, changed.launcher) == (3, "local")


def test_what_is_no_launcher_is_told_as_such(playground: Playground) -> None:
    with pytest.raises(InvalidInput, match="launcher"):
        save(runner_set_id=None, fields={**FIELDS, "launcher": "x"}, version=None, actor=playground.operator)


def test_only_administrators_may_choose_local_processes(playground: Playground) -> None:
    """Their jobs run as the server's own user."""
    for given in (FIELDS, {"name": "pool", "labels": ["linux"]}):  # the second by default
        with pytest.raises(InvalidInput, match="launcher: Only an administrator of the instance"):
            save(runner_set_id=None, fields={**given, "owner": playground.alice}, version=None, actor=playground.alice)
    assert not RunnerSet.objects.exists()


def test_owners_change_the_rest_of_a_local_set_but_not_what_its_processes_get(playground: Playground) -> None:
    given = {**FIELDS, "owner": playground.alice}
    pool = save(runner_set_id=None, fields=given, version=None, actor=playground.operator)
    save(runner_set_id=pool.pk, fields={"maximum": 3}, version=0, actor=playground.alice)
    for wanted in ({"template": {"work": "/etc"}}, {"template": {"environment": {"LD_PRELOAD": "/tmp/x.so"}}}):
        with pytest.raises(InvalidInput, match="Only an administrator"):
            save(runner_set_id=pool.pk, fields=wanted, version=1, actor=playground.alice)
    image = {"launcher": "docker", "template": {"image": "debian:12"}}
    assert save(runner_set_id=pool.pk, fields=image, version=1, actor=playground.alice).launcher == "docker"
    with pytest.raises(InvalidInput, match="Only an administrator"):
        save(runner_set_id=pool.pk, fields={"launcher": "local", "template": {}}, version=2, actor=playground.alice)


BEYOND = [
    ("docker", {"image": "x", "privileged": True}),
    ("docker", {"image": "x", "network": "host"}),
    ("docker", {"image": "x", "mounts": [{"type": "bind", "source": "/", "target": "/host"}]}),
    ("kubernetes", {"image": "x", "spec": {"hostNetwork": True}}),
    ("kubernetes", {"image": "x", "spec": {"volumes": [{"name": "host", "hostPath": {"path": "/"}}]}}),
    (
        "kubernetes",
        {"spec": {"containers": [{"name": "runner", "image": "x", "securityContext": {"privileged": True}}]}},
    ),
]


@pytest.mark.parametrize(("launcher", "template"), BEYOND)
def test_templates_that_reach_the_host_are_for_administrators_where_the_operator_allows_them_at_all(
    playground: Playground, settings: Any, launcher: str, template: dict[str, Any]
) -> None:
    given = {**FIELDS, "owner": playground.alice, "launcher": launcher, "template": template}
    for who in (playground.alice, playground.operator):
        with pytest.raises(InvalidInput, match="FORGE_SCALE_TRUSTED_TEMPLATES"):
            save(runner_set_id=None, fields=given, version=None, actor=who)
    settings.SCALE_TRUSTED_TEMPLATES = True
    with pytest.raises(InvalidInput, match="only for administrators of the instance"):
        save(runner_set_id=None, fields=given, version=None, actor=playground.alice)
    assert save(runner_set_id=None, fields=given, version=None, actor=playground.operator).template == template


@pytest.mark.parametrize("value", ["\0", "\ud800", float("nan"), "x" * 60_000])
def test_a_template_that_the_database_cannot_keep_is_refused(playground: Playground, value: Any) -> None:
    given = {**FIELDS, "template": {"environment": {"NAME": value}}}
    with pytest.raises(InvalidInput, match="template: This cannot be kept"):
        save(runner_set_id=None, fields=given, version=None, actor=playground.operator)
