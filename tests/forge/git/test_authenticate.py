from datetime import timedelta
from http.client import HTTPConnection

import pytest
from axes.models import AccessAttempt
from django.utils import timezone

from forge.access_tokens import create_access_token
from forge.models import AccessToken, Push, Repository
from tests.forge.git.conftest import PASSWORD
from tests.forge.git.wire import basic


@pytest.fixture
def ask(live_forge):
    """Status, challenge and text that git gets when it asks for a repository's refs."""

    def ask(path="alice/widget", *, service="git-upload-pack", authorization=None, **headers):
        connection = HTTPConnection("127.0.0.1", live_forge.port, timeout=30)
        if authorization:
            headers["Authorization"] = authorization
        try:
            connection.request("GET", f"/{path}/info/refs?service={service}", headers=headers)
            response = connection.getresponse()
            return response.status, response.getheader("WWW-Authenticate"), response.read()
        finally:
            connection.close()

    return ask


@pytest.fixture
def public(repository):
    Repository.objects.update(private=False)
    return repository


def test_a_private_repository_and_a_missing_one_look_the_same_to_strangers(ask, repository, person):
    person("mallory")
    for credentials, status in ((None, 401), (basic("mallory", PASSWORD), 404)):
        for service in ("git-upload-pack", "git-receive-pack"):
            found = ask("alice/widget", service=service, authorization=credentials)
            missing = ask("alice/missing", service=service, authorization=credentials)
            assert found[0] == missing[0] == status and found[1] == missing[1]
            assert found[2].replace(b"widget", b"") == missing[2].replace(b"missing", b"")


def test_the_challenge_is_basic(ask, repository):
    assert ask()[1] == 'Basic realm="Forge CI", charset="UTF-8"'


def test_everybody_reads_a_public_repository_and_nobody_unknown_writes_it(ask, public, person):
    person("mallory")
    assert ask()[0] == 200
    assert ask(service="git-receive-pack")[0] == 401
    status, _, text = ask(service="git-receive-pack", authorization=basic("mallory", PASSWORD))
    assert status == 403 and b"You may read alice/widget, but not push to it" in text


@pytest.mark.parametrize(("role", "status"), [("read", 403), ("write", 200), ("admin", 200)])
def test_a_member_reads_and_pushes_as_the_role_says(ask, member, role, status):
    member("bob", role)
    assert ask(authorization=basic("bob", PASSWORD))[0] == 200
    assert ask(service="git-receive-pack", authorization=basic("bob", PASSWORD))[0] == status


def test_a_reader_who_pushes_is_told_so_by_git(live_forge, repository, member, work):
    member("carol", "read")
    work.commit({"a": "1"})
    done = work.attempt("push", live_forge.address("alice/widget", "carol", PASSWORD), "main")
    assert done.returncode == 128 and "remote: You may read alice/widget, but not push to it" in done.stderr
    assert not Push.objects.exists()


def test_a_superuser_may_everything(ask, repository, person):
    root = person("root")
    root.is_superuser = True
    root.save()
    assert ask(service="git-receive-pack", authorization=basic("root", PASSWORD))[0] == 200


def test_a_token_works_as_password_under_any_name_or_as_the_name(ask, repository, token):
    for user, password in (("alice", token), ("x-access-token", token), (token, ""), (token, "x-oauth-basic")):
        assert ask(authorization=basic(user, password))[0] == 200
    assert ask(authorization=f"Bearer {token}")[0] == 200


def test_an_expired_revoked_or_foreign_token_proves_nobody_even_for_what_is_public(ask, public, alice):
    token, plaintext = create_access_token(user=alice, name="x", expires_at=timezone.now() + timedelta(hours=1))
    assert ask(authorization=basic("alice", plaintext))[0] == 200
    AccessToken.objects.update(expires_at=timezone.now())
    assert ask(authorization=basic("alice", plaintext))[0] == 401
    token.delete()
    assert ask(authorization=basic("alice", plaintext))[0] == 401
    assert ask(authorization=basic("alice", "frp_" + "x" * 43))[0] == 401
    assert ask(authorization=basic("x-access-token", "frj_old"))[0] == 401


def test_a_job_reads_its_own_repository_and_writes_only_if_granted(ask, repository, alice):
    other = Repository.objects.create(owner=alice, name="other")
    for token, status in (("frj_reads", 403), ("frj_writes", 200)):
        assert ask(authorization=basic("x-access-token", token))[0] == 200
        assert ask(service="git-receive-pack", authorization=basic("x-access-token", token))[0] == status
        assert ask(f"alice/{other.name}", authorization=basic("x-access-token", token))[0] == 404


def test_a_wrong_password_is_refused_and_a_changed_one_at_once(ask, repository, alice):
    assert ask(authorization=basic("alice", "wrong"))[0] == 401
    assert ask(authorization=basic("alice", PASSWORD))[0] == 200
    assert ask(authorization=basic("alice", PASSWORD))[0] == 200
    alice.set_unusable_password()
    alice.save()
    assert ask(authorization=basic("alice", PASSWORD))[0] == 401


def test_a_deactivated_person_is_refused_at_once(ask, public, alice):
    assert ask(authorization=basic("alice", PASSWORD))[0] == 200
    alice.is_active = False
    alice.save()
    assert ask(authorization=basic("alice", PASSWORD))[0] == 401


def test_too_many_wrong_passwords_lock_out_and_tokens_stay_welcome(ask, repository, member, settings, token):
    member("bob", "read")
    for attempt in range(settings.AXES_FAILURE_LIMIT + 1):
        status, _, text = ask(authorization=basic("bob", f"wrong {attempt}"))
    assert status == 429 and b"Too many wrong passwords: wait 15 minutes" in text
    assert ask(authorization=basic("bob", PASSWORD))[0] == 429
    assert ask(authorization=basic("bob", token))[0] == 200
    assert ask(authorization=basic("alice", PASSWORD))[0] == 200


def test_a_right_password_forgets_the_wrong_ones_before(ask, repository, alice):
    for attempt in range(3):
        ask(authorization=basic("alice", f"wrong {attempt}"))
    assert AccessAttempt.objects.get().failures_since_start == 3
    assert ask(authorization=basic("alice", PASSWORD))[0] == 200
    assert not AccessAttempt.objects.exists()


def test_old_tokens_lock_nobody_out(ask, repository, settings):
    for attempt in range(settings.AXES_FAILURE_LIMIT + 1):
        assert ask(authorization=basic("x-access-token", f"frj_{attempt}"))[0] == 401
    assert ask(authorization=basic("x-access-token", "frj_reads"))[0] == 200


@pytest.mark.parametrize(
    "authorization",
    [
        "Basic",
        "Basic !!!",
        "Basic YWxpY2U=",
        "Digest x",
        "Bearer x",
        "Basic /////w==",
        "Basic " + "A" * 9000,
        basic("a\0", "b"),
    ],
)
def test_credentials_that_cannot_be_read_are_refused(ask, public, authorization):
    assert ask(authorization=authorization)[0] == 401


@pytest.mark.parametrize("path", ["alice", "alice/widget/x", "alice/..%2Fwidget", "alice/wid%00get", "%FF/widget"])
def test_other_addresses_are_not_gits(ask, public, path):
    assert ask(path)[0] == 404


def test_the_dumb_protocol_is_not_served(live_forge, public):
    connection = HTTPConnection("127.0.0.1", live_forge.port, timeout=30)
    connection.request("GET", "/alice/widget/info/refs")
    response = connection.getresponse()
    assert response.status == 403 and b"smart HTTP" in response.read()
    connection.close()


def test_no_password_and_no_token_reaches_the_log(live_forge, repository, token, work):
    work.commit({"a": "1"})
    work.git("push", "-q", live_forge.address("alice/widget", "alice", token), "main")
    work.git("fetch", "-q", live_forge.address("alice/widget", "alice", PASSWORD), "main")
    text = live_forge.log.read_text()
    assert "git-receive-pack" in text and token not in text and PASSWORD not in text and "correct%20horse" not in text
