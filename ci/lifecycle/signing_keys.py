"""With which key are id tokens signed, and whose public half must verifiers still find?"""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone
from jwt.algorithms import RSAAlgorithm
from jwt.utils import base64url_encode

from ci.lifecycle import events
from ci.lifecycle.encryption import decrypt, encrypt
from ci.models import SigningKey

ALGORITHM = "RS256"
BITS = 2048
# How long an id token is valid; GitHub's are for minutes too, enough to exchange one for something else.
LIFETIME = timedelta(minutes=10)
# A retired key stays published for what it signed last, and for a verifier whose clock is behind.
PUBLISHED_AFTER = LIFETIME + timedelta(minutes=5)
# Held while a key is made or replaced, so that two processes never make two; nothing else locks this number.
_LOCK = 0x6964746F6B


def current() -> SigningKey:
    """The key that signs now, made at its first use."""
    found = _in_use()
    if found is not None:
        return found
    with transaction.atomic():
        _lock()
        return _in_use() or _make()


def private_half(key: SigningKey) -> rsa.RSAPrivateKey:
    """Raises SecretUnreadable."""
    loaded = serialization.load_pem_private_key(decrypt(key.encrypted).encode(), password=None)
    assert isinstance(loaded, rsa.RSAPrivateKey)
    return loaded


@transaction.atomic
def replace() -> bool:
    """Sign with a new key from now on; whether there was one to replace. The old private half is gone for good."""
    _lock()
    now = timezone.now()
    retired = SigningKey.objects.filter(retired_at=None).update(retired_at=now, encrypted="")
    SigningKey.objects.filter(retired_at__lt=now - PUBLISHED_AFTER).delete()
    if not retired:
        return False
    key = _make()
    events.record("signing_key_replaced", detail=f"Id tokens are signed with {key.kid}")
    return True


def key_set() -> dict[str, Any]:
    """The public keys as a JWK set (RFC 7517): the one in use, and those whose tokens may still be valid."""
    current()  # a verifier that is set up before the first token must not find none
    since = timezone.now() - PUBLISHED_AFTER
    rows = SigningKey.objects.filter(Q(retired_at=None) | Q(retired_at__gte=since)).order_by("-id")
    return {"keys": [_jwk(row) for row in rows]}


def _in_use() -> SigningKey | None:
    return SigningKey.objects.filter(algorithm=ALGORITHM, retired_at=None).first()


def _lock() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def _make() -> SigningKey:
    private = rsa.generate_private_key(public_exponent=65537, key_size=BITS)
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return SigningKey.objects.create(
        kid=_thumbprint(_numbers(public)), algorithm=ALGORITHM, encrypted=encrypt(pem.decode()), public=public.decode()
    )


def _numbers(public: bytes) -> dict[str, str]:
    """The members of a JWK that its thumbprint is of."""
    loaded = serialization.load_pem_public_key(public)
    assert isinstance(loaded, rsa.RSAPublicKey)
    jwk = RSAAlgorithm.to_jwk(loaded, as_dict=True)
    return {name: str(jwk[name]) for name in ("e", "kty", "n")}


def _thumbprint(numbers: dict[str, str]) -> str:
    """RFC 7638: the same key has the same id wherever it is computed."""
    text = json.dumps(numbers, sort_keys=True, separators=(",", ":"))
    return base64url_encode(hashlib.sha256(text.encode()).digest()).decode()


def _jwk(key: SigningKey) -> dict[str, str]:
    return {**_numbers(key.public.encode()), "alg": key.algorithm, "use": "sig", "kid": key.kid}
