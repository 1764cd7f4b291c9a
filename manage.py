#!/usr/bin/env python
"""Runs Django's commands with Forge CI's settings."""

import os
import sys

# Before the first import that an older Python could not even read.
if sys.version_info < (3, 11):  # noqa: UP036
    print(f"Forge CI needs Python 3.11 or newer, and this is {sys.version.split()[0]}.", file=sys.stderr)
    sys.exit(2)

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "forge.settings")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        print(error, file=sys.stderr)
        sys.exit(2)
