"""Do the tests of pushing pass on two of everything? The very same ones."""

from tests.e2e.test_push_and_run import *  # noqa: F403
