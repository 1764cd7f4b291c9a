"""The settings of the server under test: CI's parts replaced by ones whose effect can be read."""

import os

from forge.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
PUSH_TASK = "tests.forge.git.stand_ins.plan"
PUSH_REPORT = os.environ.get("TEST_PUSH_REPORT", "tests.forge.git.stand_ins.report")
GIT_TOKEN_ACTORS = {"frj_": "tests.forge.git.stand_ins.actor_of_token"}
