"""Chunks are zstd already: that PostgreSQL tries to compress them again costs time and gains nothing."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("ci", "0001_initial")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE ci_logchunk ALTER COLUMN data SET STORAGE EXTERNAL",
            "ALTER TABLE ci_logchunk ALTER COLUMN data SET STORAGE EXTENDED",
        ),
    ]
