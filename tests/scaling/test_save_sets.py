"""save: a template that its launcher cannot use is refused when it is written, not when a runner is to be started."""

import pytest

from ci.lifecycle.errors import InvalidInput
from ci.models import RunnerSet
from ci.scaling import sets
from tests.playground import Playground

FIELDS = {"name": "pool", "labels": ["linux"], "launcher": "local", "maximum": 2}


def test_a_template_of_another_launcher_is_refused(playground: Playground) -> None:
    given = {**FIELDS, "template": {"image": "debian:12"}}
    with pytest.raises(InvalidInput, match="'image' is no key for local processes"):
        sets.save(runner_set_id=None, fields=given, version=None, actor=playground.operator)
    assert not RunnerSet.objects.exists()


def test_a_change_of_the_launcher_asks_for_a_template_of_its_own(playground: Playground) -> None:
    given = {**FIELDS, "template": {"nice": 5}}
    pool = sets.save(runner_set_id=None, fields=given, version=None, actor=playground.operator)
    with pytest.raises(InvalidInput, match="template"):
        sets.save(runner_set_id=pool.pk, fields={"launcher": "docker"}, version=0, actor=playground.operator)
    changed = sets.save(runner_set_id=pool.pk, fields={"maximum": 3}, version=0, actor=playground.operator)
    assert (changed.maximum, changed.launcher) == (3, "local")


def test_what_is_no_launcher_is_told_as_such(playground: Playground) -> None:
    with pytest.raises(InvalidInput, match="launcher"):
        sets.save(runner_set_id=None, fields={**FIELDS, "launcher": "x"}, version=None, actor=playground.operator)
