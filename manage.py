#!/usr/bin/env python
"""Runs Django's commands with Forge CI's settings."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "forge.settings")
    execute_from_command_line(sys.argv)
