"""How does a job prove to others what it is? By an OpenID Connect id token that this server signs.

Protocol and words: GitHub docs, "OpenID Connect"; addresses as runners know them (`/api/actions/…`)."""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import jwt
from django.conf import settings
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac

from ci.lifecycle import id_token_claims, signing_keys
from ci.lifecycle.encryption import SecretUnreadable
from ci.lifecycle.errors import Conflict, InvalidInput, JobEnded, NotAllowed, Unauthenticated
from ci.lifecycle.tokens import token_permissions
from ci.models import Job, JobState
from forge.tokens import PREFIXES, hash_token

# Every program of a step sees it, so it may do nothing else; the job's own token could push, or end the job.
PREFIX = "fri_"
MAX_AUDIENCE = 1000
_TOKEN = re.compile(PREFIX + r"([1-9][0-9]{0,17})_([A-Za-z0-9_-]{43})", re.ASCII)
# For verifiers whose clock is behind ours.
_VALID_BEFORE = timedelta(minutes=5)


@dataclass(frozen=True)
class IdTokenRequest:
    """What a job needs to ask for id tokens; the token is a secret."""

    url: str
    token: str


def issuer() -> str:
    return f"{settings.SERVER_URL}/api/actions"


def request_of(job: Job) -> IdTokenRequest | None:
    """Of a job with a job token: how it asks for id tokens; None where it may not."""
    if not may_request(job):
        return None
    url = f"{issuer()}/_apis/pipelines/workflows/{job.run_id}/idtoken?placeholder=true"
    return IdTokenRequest(url, f"{PREFIX}{job.pk}_{_proof(job)}")


def may_request(job: Job) -> bool:
    """Whether its token has `id-token: write`. As with secrets, never of a run that nobody with write access caused."""
    return job.run.trusted and token_permissions(job)["id-token"] == "write"


def issue(*, run_id: int, token: str, audiences: Sequence[str] = ()) -> str:
    """A signed id token for the running job whose request token this is. `audiences`: as asked for, at most one.

    Raises Unauthenticated, NotAllowed (another run, or no permission), JobEnded, Conflict (not begun, or the key
    cannot be read), InvalidInput (audience).
    """
    job = _job_of(token)
    if job.run_id != run_id:
        raise NotAllowed("This token is of a job of another run: use ACTIONS_ID_TOKEN_REQUEST_URL as it is.")
    if not may_request(job):
        raise NotAllowed("The permissions of this job do not include `id-token: write`.")
    if job.is_ended:
        raise JobEnded(str(job.conclusion), job.cancel_reason)
    if job.state != JobState.RUNNING:
        raise Conflict("The assignment is not acknowledged: the job has not begun.")
    return _signed(job, _audience(job, audiences))


def configuration() -> dict[str, Any]:
    """The discovery document. Source: OpenID Connect Discovery 1.0, section 3."""
    return {
        "issuer": issuer(),
        "jwks_uri": f"{issuer()}/.well-known/keys",
        "subject_types_supported": ["public", "pairwise"],
        "response_types_supported": ["id_token"],
        "claims_supported": sorted({*id_token_claims.ALWAYS, *id_token_claims.SOMETIMES}),
        "id_token_signing_alg_values_supported": [signing_keys.ALGORITHM],
        "scopes_supported": ["openid"],
    }


def _proof(job: Job) -> str:
    """Bound to the assignment: with its job token replaced or dropped, the request token is worth nothing. So nothing
    of it needs to be stored."""
    mac = salted_hmac("ci.lifecycle.id_tokens", f"{job.pk}:{job.token_hash}", algorithm="sha256")
    return base64.urlsafe_b64encode(mac.digest()).decode().rstrip("=")


def _job_of(token: str) -> Job:
    """The job, ended or not, whose current request token this is. Raises Unauthenticated, NotAllowed."""
    rows = Job.objects.select_related("run__repository__owner", "parent")
    if token.startswith(PREFIXES["job"]):
        job = rows.filter(token_hash=hash_token(token)).first()
        if job is None:
            raise Unauthenticated()
        if may_request(job):
            raise NotAllowed("This is the job's own token: send ACTIONS_ID_TOKEN_REQUEST_TOKEN.")
        raise NotAllowed("The permissions of this job do not include `id-token: write`.")
    found = _TOKEN.fullmatch(token)
    job = rows.filter(pk=int(found[1])).first() if found else None
    if found is None or job is None or job.token_hash is None or not constant_time_compare(_proof(job), found[2]):
        raise Unauthenticated()
    return job


def _audience(job: Job, asked: Sequence[str]) -> str:
    """Raises InvalidInput."""
    given = [audience for audience in asked if audience]
    if not given:
        return id_token_claims.default_audience(job.run.repository)
    if len(given) > 1:
        raise InvalidInput({"audience": "Ask for one audience at a time."})
    if len(given[0]) > MAX_AUDIENCE or not given[0].isprintable():
        raise InvalidInput({"audience": f"At most {MAX_AUDIENCE} printable characters."})
    return given[0]


def _signed(job: Job, audience: str) -> str:
    now = timezone.now()
    said = {
        **id_token_claims.claims(job),
        "iss": issuer(),
        "aud": audience,
        "jti": str(uuid.uuid4()),
        "iat": int(now.timestamp()),
        "nbf": int((now - _VALID_BEFORE).timestamp()),
        "exp": int((now + signing_keys.LIFETIME).timestamp()),
    }
    key = signing_keys.current()
    try:
        private = signing_keys.private_half(key)
    except SecretUnreadable:
        raise Conflict(
            "The server cannot read the key that signs id tokens. An operator must put the key it was encrypted with "
            "back into FORGE_SECRETS_KEYS, or run `manage.py rotate_keys`, which makes a new one."
        ) from None
    return jwt.encode(said, private, algorithm=signing_keys.ALGORITHM, headers={"kid": key.kid})
