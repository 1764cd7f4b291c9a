from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ci", "0012_artifacts_and_caches")]

    operations = [
        migrations.AddField(
            model_name="runner",
            name="uuid",
            field=models.UUIDField(
                blank=True,
                editable=False,
                help_text="Of a runner of Forgejo or Gitea: its name to us.",
                null=True,
                unique=True,
            ),
        ),
        migrations.AddField(
            model_name="log",
            name="base",
            field=models.PositiveIntegerField(
                default=0,
                help_text="Where the current assignment's lines begin: what is before is of runners that had it first.",
            ),
        ),
    ]
