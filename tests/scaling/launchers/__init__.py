"""Launchers' tests: each kind of launcher passes the suite in contract.py."""

import pytest

# The suite's asserts lie in no test_*.py, and would fail without showing values.
pytest.register_assert_rewrite("tests.scaling.launchers.contract")
