from django.db import migrations

# Rows that change all their lives. Their dead versions lie before the living ones in every index, so vacuum goes over
# them when one in a hundred is dead, whatever the server's own default (one in five, where PostgreSQL is given).
TABLES = ("ci_job", "ci_run", "ci_step", "ci_heartbeat", "ci_runner", "ci_log")
EARLY = "autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 200, autovacuum_analyze_scale_factor = 0.02"
NAMES = "autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, autovacuum_analyze_scale_factor"


class Migration(migrations.Migration):
    dependencies = [("ci", "0015_queue_by_scope")]

    operations = [
        migrations.RunSQL(f"ALTER TABLE {table} SET ({EARLY})", f"ALTER TABLE {table} RESET ({NAMES})")
        for table in TABLES
    ]
