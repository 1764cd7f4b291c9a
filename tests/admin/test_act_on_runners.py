"""Do the actions on runners and their tokens do what they say, and only on what the operator saw?"""

from ci.lifecycle import registration
from ci.models import Event, RegistrationToken, Runner
from tests.playground import states_of


def test_pause_and_resume(playground, operator):
    runner = playground.runner()
    assert operator.act("pause", runner) == ["alpha: paused"]
    assert operator.act("pause", runner) == ["alpha: is paused already."]
    playground.run()
    assert playground.fetch(runner) is None
    assert operator.act("resume", runner) == ["alpha: resumed"]
    assert playground.fetch(runner) is not None
    assert Event.objects.filter(runner=runner, kind="runner_paused", actor=playground.operator).exists()


def test_a_runner_that_has_changed_meanwhile_is_not_removed(playground, operator):
    runner = playground.runner()
    page = operator.listed(Runner)
    registration.pause_runner(runner_id=runner.pk, paused=True, actor=playground.alice)
    assert "has changed meanwhile" in operator.act("remove", runner, page=page)[0]
    assert Runner.objects.exists()


def test_a_runner_that_took_a_job_meanwhile_keeps_it(playground, operator):
    run = playground.run()
    runner = playground.runner()
    page = operator.listed(Runner)
    playground.assigned(runner).begin()
    assert "has changed meanwhile" in operator.act("remove", runner, page=page)[0]
    assert states_of(run) == {"build": "running"}
    assert Runner.objects.exists()


def test_removing_a_runner_gives_its_job_back(playground, operator):
    run = playground.run()
    runner = playground.runner()
    playground.assigned(runner)
    assert operator.act("remove", runner) == ["alpha: removed"]
    assert not Runner.objects.exists()
    assert states_of(run) == {"build": "queued"}


def test_a_registration_token_is_revoked_once(playground, operator):
    playground.runner()
    token = RegistrationToken.objects.get()
    assert operator.act("revoke", token) == [f"{token}: revoked"]
    assert not RegistrationToken.objects.get().is_usable
    assert len(operator.act("revoke", token)) == 1
    page = operator.opened(token).content.decode()
    assert token.token_hash not in page
