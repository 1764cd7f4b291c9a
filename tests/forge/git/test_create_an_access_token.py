from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from forge import access_tokens
from forge.access_tokens import create_access_token, revoke_access_token, user_of_access_token
from forge.models import AccessToken


def test_it_is_shown_once_and_only_its_hash_is_kept(alice):
    token, plaintext = create_access_token(user=alice, name="laptop")
    assert plaintext.startswith("frp_")
    assert plaintext not in str(AccessToken.objects.values().get())
    assert user_of_access_token(plaintext) == alice
    token.refresh_from_db()
    assert token.last_used_at is not None


def test_a_revoked_token_is_nobodys(alice):
    token, plaintext = create_access_token(user=alice, name="laptop")
    assert revoke_access_token(user=alice, token_id=token.pk)
    assert user_of_access_token(plaintext) is None
    assert not revoke_access_token(user=alice, token_id=token.pk)


def test_nobody_revokes_anothers_token(alice, django_user_model):
    token, plaintext = create_access_token(user=alice, name="laptop")
    assert not revoke_access_token(user=django_user_model.objects.create_user("mallory"), token_id=token.pk)
    assert user_of_access_token(plaintext) == alice


def test_an_expired_token_is_nobodys(alice):
    _, plaintext = create_access_token(user=alice, name="x", expires_at=timezone.now() + timedelta(hours=1))
    assert user_of_access_token(plaintext) == alice
    AccessToken.objects.update(expires_at=timezone.now())
    assert user_of_access_token(plaintext) is None


def test_a_deactivated_persons_token_is_nobodys(alice):
    _, plaintext = create_access_token(user=alice, name="x")
    alice.is_active = False
    alice.save()
    assert user_of_access_token(plaintext) is None


@pytest.mark.parametrize("token", ["", "frp_", "frp_\0", "frp_" + "x" * 100_000, "frj_abc", "frp_\udc80"])
def test_what_is_no_token_is_nobodys(db, token):
    assert user_of_access_token(token) is None


def test_it_refuses_an_empty_name_a_past_expiry_and_too_many(alice, monkeypatch):
    with pytest.raises(ValidationError) as caught:
        create_access_token(user=alice, name=" ")
    assert "name" in caught.value.message_dict
    with pytest.raises(ValidationError) as caught:
        create_access_token(user=alice, name="x", expires_at=timezone.now())
    assert "expires_at" in caught.value.message_dict
    monkeypatch.setattr(access_tokens, "MAX_TOKENS", 0)
    with pytest.raises(ValidationError, match="Revoke one first"):
        create_access_token(user=alice, name="x")
