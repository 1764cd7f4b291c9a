import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('ci', '0014_sums_and_digests_of_blobs'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='job',
            name='job_queued_can_be_matched',
        ),
        migrations.RemoveIndex(
            model_name='job',
            name='job_token',
        ),
        migrations.RemoveIndex(
            model_name='job',
            name='job_in_group',
        ),
        migrations.RemoveIndex(
            model_name='job',
            name='job_in_called_group',
        ),
        migrations.AddField(
            model_name='job',
            name='queue_owner',
            field=models.BigIntegerField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='job',
            name='queue_repository',
            field=models.BigIntegerField(blank=True, editable=False, null=True),
        ),
        migrations.RunSQL(
            "UPDATE ci_job SET queue_repository = repository.id, queue_owner = repository.owner_id "
            "FROM ci_run run JOIN forge_repository repository ON repository.id = run.repository_id "
            "WHERE run.id = ci_job.run_id AND ci_job.state = 'queued'",
            migrations.RunSQL.noop,
        ),
        migrations.AlterField(
            model_name='event',
            name='actor',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AlterField(
            model_name='event',
            name='runner',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='events', to='ci.runner'),
        ),
        migrations.AlterField(
            model_name='event',
            name='runner_set',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='events', to='ci.runnerset'),
        ),
        migrations.AlterField(
            model_name='job',
            name='called_group',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='calls', to='ci.concurrencygroup'),
        ),
        migrations.AlterField(
            model_name='job',
            name='cancelled_by',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AlterField(
            model_name='job',
            name='carried_from',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='copies', to='ci.job'),
        ),
        migrations.AlterField(
            model_name='job',
            name='concurrency_group',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='jobs', to='ci.concurrencygroup'),
        ),
        migrations.AlterField(
            model_name='job',
            name='environment',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='jobs', to='ci.environment'),
        ),
        migrations.AlterField(
            model_name='job',
            name='label_set',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='jobs', to='ci.labelset'),
        ),
        migrations.AlterField(
            model_name='job',
            name='parent',
            field=models.ForeignKey(blank=True, db_index=False, help_text='The call of a reusable workflow that it belongs to.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='children', to='ci.job'),
        ),
        migrations.AlterField(
            model_name='job',
            name='run',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='jobs', to='ci.run'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(condition=models.Q(('runner__isnull', False)), fields=['runner'], name='event_by_runner'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(condition=models.Q(('runner_set__isnull', False)), fields=['runner_set'], name='event_by_runner_set'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(condition=models.Q(('actor__isnull', False)), fields=['actor'], name='event_by_actor'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(models.F('label_set'), models.F('queue_repository'), models.OrderBy(models.F('priority'), descending=True), models.F('queued_at'), models.F('id'), condition=models.Q(('state', 'queued')), name='job_queue_of_repository'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(models.F('label_set'), models.F('queue_owner'), models.OrderBy(models.F('priority'), descending=True), models.F('queued_at'), models.F('id'), condition=models.Q(('state', 'queued')), name='job_queue_of_owner'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(models.Q(('state', 'ended'), _negated=True), ('concurrency_group__isnull', False)), fields=['concurrency_group', 'id'], name='job_in_group'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(models.Q(('state', 'ended'), _negated=True), ('called_group__isnull', False)), fields=['called_group', 'id'], name='job_in_called_group'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('token_hash__isnull', False)), fields=['token_hash'], name='job_by_token_hash'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('parent__isnull', False)), fields=['parent'], name='job_by_parent'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('carried_from__isnull', False)), fields=['carried_from'], name='job_by_carried_from'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('cancelled_by__isnull', False)), fields=['cancelled_by'], name='job_by_cancelled_by'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('environment__isnull', False)), fields=['environment'], name='job_by_environment'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('concurrency_group__isnull', False)), fields=['concurrency_group'], name='job_by_concurrency_group'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('called_group__isnull', False)), fields=['called_group'], name='job_by_called_group'),
        ),
        migrations.AddIndex(
            model_name='log',
            index=models.Index(condition=models.Q(('sealed_at', None)), fields=['job'], name='log_unsealed'),
        ),
        migrations.RemoveIndex(model_name='artifact', name='artifact_expiry'),
        migrations.AddIndex(
            model_name='artifact',
            index=models.Index(condition=models.Q(('blob__isnull', False), ('finalized_at__isnull', False)), fields=['expires_at', 'id'], name='artifact_to_expire'),
        ),
        migrations.AddConstraint(
            model_name='job',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('state', 'queued'), _negated=True), models.Q(('expanded', True), ('label_set__isnull', False), ('queue_owner__isnull', False), ('queue_repository__isnull', False), ('queued_at__isnull', False)), _connector='OR'), name='job_queued_can_be_matched'),
        ),
    ]
