from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ci", "0013_runners_by_uuid")]

    operations = [
        migrations.AddField(
            model_name="blob",
            name="put_size",
            field=models.PositiveBigIntegerField(default=0, help_text="Bytes of the blocks that are there."),
        ),
        migrations.AddField(
            model_name="blob",
            name="put_count",
            field=models.PositiveIntegerField(default=0, help_text="How many blocks there are."),
        ),
        migrations.AddField(
            model_name="blob",
            name="digest",
            field=models.CharField(blank=True, help_text="sha256:…, once somebody asked for it.", max_length=80),
        ),
        migrations.RunSQL(
            "UPDATE ci_blob SET put_size = sums.size, put_count = sums.count FROM "
            "(SELECT blob_id, sum(size) AS size, count(*) AS count FROM ci_blobpart GROUP BY blob_id) AS sums "
            "WHERE ci_blob.id = sums.blob_id",
            migrations.RunSQL.noop,
        ),
    ]
