"""Which launchers does this installation have, and what do they call it?"""

from __future__ import annotations

import functools

from django.conf import settings
from django.utils.crypto import salted_hmac

from ci.scaling import launchers
from ci.scaling.launchers.protocol import Launcher


def installation() -> str:
    """The setting, else something that follows from the secret key: all processes of an installation share it."""
    return settings.INSTALLATION or salted_hmac("ci.scaling.installation", "", algorithm="sha256").hexdigest()[:16]


@functools.cache
def launcher_of(kind: str) -> Launcher:
    """The one launcher of this kind. Raises ValueError, LaunchError."""
    return launchers.launcher(kind, installation=installation())


def url_for(kind: str) -> str:
    """The forge's address for processes that this kind of launcher starts."""
    return str(settings.SCALE_LOCAL_URL if kind == "local" else settings.SCALE_URL)
