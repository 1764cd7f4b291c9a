"""How many of something did the operator ask for? A number of the environment, or a sentence on what is wrong."""

import os

from django.core.exceptions import ImproperlyConfigured


def given_count(name: str, *, most: int) -> int | None:
    """The number in the variable `name`, 1 to `most`; None where it is empty or missing.

    Raises ImproperlyConfigured.
    """
    text = os.environ.get(name, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:9]) <= most or len(text) > 9:
        raise ImproperlyConfigured(f"{name} is {text[:40]!r}: give a number from 1 to {most}, or leave it out.")
    return int(text)
