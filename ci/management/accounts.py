"""Who can sign in to a new installation?"""

import itertools
import secrets
from typing import Any

from django.contrib.auth import get_user_model

# Not "admin": a person's pages stand below their name, and /admin/ is Django's.
FIRST_NAME = "operator"


def first_admin() -> tuple[Any, str | None]:
    """The oldest active administrator; where there is none, a new one and its password (kept nowhere but as a hash)."""
    users = get_user_model().objects
    if known := users.filter(is_superuser=True, is_active=True).order_by("pk").first():
        return known, None
    names = itertools.chain([FIRST_NAME], (f"{FIRST_NAME}{number}" for number in itertools.count(2)))
    name = next(name for name in names if not users.filter(username__iexact=name).exists())
    password = secrets.token_urlsafe(12)
    return users.create_superuser(username=name, password=password), password
