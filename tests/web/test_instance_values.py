"""Are the secrets and variables of the whole instance the operator's alone?"""

from typing import Any

import pytest

from ci.models import Scope, Secret, Variable
from tests.playground import Playground


@pytest.mark.parametrize(("kind", "model"), [("secrets", Secret), ("variables", Variable)])
def test_the_operator_sets_them_for_every_repository(
    playground: Playground, browser: Any, kind: str, model: Any
) -> None:
    client, address = browser(playground.operator), f"/settings/instance/{kind}/"
    said = client.post(address, {"action": "set", "name": "WIDE", "value": "a-value"}, follow=True).content.decode()
    assert f"The {kind.removesuffix('s')} WIDE is set." in said
    assert "of the instance" in said
    assert model.objects.get().scope == Scope()
    client.post(address, {"action": "delete", "name": "WIDE"})
    assert not model.objects.exists()


@pytest.mark.parametrize("kind", ["secrets", "variables"])
def test_nobody_else_may(playground: Playground, browser: Any, kind: str) -> None:
    address = f"/settings/instance/{kind}/"
    given = {"action": "set", "name": "WIDE", "value": "x"}
    alice = browser(playground.alice)
    assert alice.get(address).status_code == alice.post(address, given).status_code == 403
    assert browser(None).get(address)["Location"] == f"/login/?next={address}"
    assert not Secret.objects.exists()
    assert not Variable.objects.exists()
