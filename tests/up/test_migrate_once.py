"""Do installations that share a database, and start at once, migrate it one after the other?"""

import io

import pytest

from ci.management.data_folder import DataFolder
from ci.management.installation import Installation, Options
from ci.management.progress import Progress
from tests.races.interleaving import rival_before

READ_WHAT_IS_APPLIED = r'FROM "django_migrations"'


@pytest.mark.django_db(transaction=True)
def test_who_starts_meanwhile_waits(tmp_path):
    options = Options(host="127.0.0.1", port=1, runners=0, demo=False, exit=False)

    def migrate():
        Installation(DataFolder(tmp_path), options, Progress(io.StringIO()))._migrate()

    with rival_before(READ_WHAT_IS_APPLIED, migrate) as rival:
        migrate()
    assert rival.error is None
    assert "pg_advisory_lock" in rival.waited_in
