"""Which shapes do the owners' API's answers and bodies have?"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework import serializers

from ci.lifecycle.fired_events import never_fired
from ci.models import Environment, Job, RegistrationToken, Run, Runner, RunnerPhase, Secret, Step, Variable, Workflow
from forge.models import Member, Repository

_LARGEST_VALUE = 48 * 1024


class PersonName(serializers.SlugRelatedField[Any]):
    def __init__(self, **options: Any) -> None:
        super().__init__(slug_field="username", read_only=True, **options)


class RepositoryShape(serializers.ModelSerializer[Repository]):
    owner = PersonName()
    html_url = serializers.SerializerMethodField()
    clone_url = serializers.CharField(read_only=True)

    class Meta:
        model = Repository
        fields = [
            "id",
            "owner",
            "name",
            "description",
            "private",
            "default_branch",
            "created_at",
            "pushed_at",
            "html_url",
            "clone_url",
        ]

    def get_html_url(self, repository: Repository) -> str:
        return settings.SERVER_URL + repository.get_absolute_url()


class NewRepository(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=100)
    description = serializers.CharField(max_length=350, allow_blank=True, default="")
    private = serializers.BooleanField(default=True)
    default_branch = serializers.CharField(max_length=255, default="main")


class RepositoryChange(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=100, required=False)
    description = serializers.CharField(max_length=350, allow_blank=True, required=False)
    private = serializers.BooleanField(required=False)
    default_branch = serializers.CharField(max_length=255, required=False)


class MemberShape(serializers.ModelSerializer[Member]):
    user = PersonName()
    role = serializers.ChoiceField(choices=Member.Role.choices)

    class Meta:
        model = Member
        fields = ["user", "role", "created_at"]


class RoleGiven(serializers.Serializer[Any]):
    role = serializers.ChoiceField(choices=Member.Role.choices)


class WorkflowShape(serializers.ModelSerializer[Workflow]):
    problems = serializers.ListField(child=serializers.DictField())
    events = serializers.ListField(child=serializers.CharField())
    never_fired = serializers.SerializerMethodField(help_text="Those of its events that this server does not fire yet.")

    class Meta:
        model = Workflow
        fields = ["id", "name", "path", "enabled", "on_default_branch", "events", "never_fired", "problems"]

    def get_never_fired(self, workflow: Workflow) -> list[str]:
        return never_fired(workflow.events)


class WorkflowChange(serializers.Serializer[Any]):
    enabled = serializers.BooleanField(help_text="Whether events and people may start it.")


class Dispatch(serializers.Serializer[Any]):
    ref = serializers.CharField(max_length=1024, trim_whitespace=False, help_text="A branch or tag.")
    inputs = serializers.DictField(default=dict, help_text="By name, as the workflow declares them.")


class RepositoryDispatch(serializers.Serializer[Any]):
    event_type = serializers.CharField(max_length=100, help_text="What `types` of the trigger are compared with.")
    client_payload = serializers.DictField(
        default=dict, help_text="At most 10 properties; workflows read them as `github.event.client_payload`."
    )


class RunIds(serializers.Serializer[Any]):
    run_ids = serializers.ListField(child=serializers.IntegerField(), help_text="The runs it started.")


class RunShape(serializers.ModelSerializer[Run]):
    repository = serializers.CharField(read_only=True, help_text="owner/name")
    inputs = serializers.DictField()
    problems = serializers.ListField(child=serializers.DictField(), help_text="Of a startup failure.")
    source_run_id = serializers.IntegerField(
        allow_null=True, read_only=True, help_text="Of a workflow_run event: the run that caused it."
    )
    html_url = serializers.SerializerMethodField()

    class Meta:
        model = Run
        fields = [
            "id",
            "repository",
            "workflow_name",
            "workflow_path",
            "number",
            "attempt",
            "title",
            "event",
            "source_run_id",
            "ref",
            "sha",
            "actor_name",
            "triggered_by_name",
            "inputs",
            "problems",
            "state",
            "conclusion",
            "created_at",
            "started_at",
            "ended_at",
            "version",
            "html_url",
        ]

    def get_html_url(self, run: Run) -> str:
        return settings.SERVER_URL + run.get_absolute_url()


class StepShape(serializers.ModelSerializer[Step]):
    annotations = serializers.ListField(child=serializers.DictField())

    class Meta:
        model = Step
        fields = [
            "number",
            "name",
            "state",
            "conclusion",
            "started_at",
            "ended_at",
            "first_line",
            "line_count",
            "annotations",
        ]


class JobShape(serializers.ModelSerializer[Job]):
    run_id = serializers.IntegerField()
    runs_on = serializers.ListField(child=serializers.CharField())
    needs = serializers.ListField(child=serializers.CharField())
    outputs = serializers.DictField()
    parent_id = serializers.IntegerField(
        allow_null=True, read_only=True, help_text="The call of a reusable workflow that it belongs to."
    )
    uses = serializers.CharField(
        allow_null=True, read_only=True, help_text="Of a call: the workflow that it calls, as its file says it."
    )
    environment: Any = serializers.SlugRelatedField(slug_field="name", read_only=True, allow_null=True)
    html_url = serializers.SerializerMethodField()

    class Meta:
        model = Job
        fields = [
            "id",
            "run_id",
            "parent_id",
            "attempt",
            "key",
            "name",
            "needs",
            "uses",
            "environment",
            "environment_url",
            "deploys",
            "runs_on",
            "state",
            "conclusion",
            "cancel_reason",
            "end_note",
            "runner_name",
            "outputs",
            "created_at",
            "queued_at",
            "started_at",
            "ended_at",
            "version",
            "html_url",
        ]

    def get_html_url(self, job: Job) -> str:
        return settings.SERVER_URL + job.get_absolute_url()


class JobDetail(JobShape):
    steps = StepShape(many=True)
    waits_for = serializers.CharField(allow_blank=True, help_text="Why it does not run yet; empty once it does.")

    class Meta(JobShape.Meta):
        fields = [*JobShape.Meta.fields, "steps", "waits_for"]


class Expected(serializers.Serializer[Any]):
    version = serializers.IntegerField(
        min_value=0,
        max_value=2**31 - 1,
        required=False,
        help_text="Do it only if the row still has this `version`; without it, whatever happened meanwhile.",
    )


class Cancelled(serializers.Serializer[Any]):
    jobs = serializers.IntegerField(help_text="How many jobs it concerned.")


class SecretShape(serializers.ModelSerializer[Secret]):
    class Meta:
        model = Secret
        fields = ["name", "created_at", "updated_at"]


class VariableShape(serializers.ModelSerializer[Variable]):
    class Meta:
        model = Variable
        fields = ["name", "value", "created_at", "updated_at"]


class SecretValue(serializers.Serializer[Any]):
    value = serializers.CharField(max_length=_LARGEST_VALUE, trim_whitespace=False)


class VariableValue(serializers.Serializer[Any]):
    value = serializers.CharField(max_length=_LARGEST_VALUE, trim_whitespace=False, allow_blank=True)


class EnvironmentShape(serializers.ModelSerializer[Environment]):
    class Meta:
        model = Environment
        fields = ["id", "name", "created_at"]


class NewEnvironment(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=255)


class RunnerShape(serializers.ModelSerializer[Runner]):
    labels = serializers.ListField(child=serializers.CharField())
    phase = serializers.ChoiceField(choices=RunnerPhase.choices)
    online = serializers.BooleanField(source="is_online")

    class Meta:
        model = Runner
        fields = [
            "id",
            "name",
            "labels",
            "ephemeral",
            "paused",
            "phase",
            "online",
            "agent_version",
            "os",
            "arch",
            "last_seen_at",
            "version",
        ]


class RunnerChange(Expected):
    paused = serializers.BooleanField()


class NewRegistrationToken(serializers.Serializer[Any]):
    expires_at = serializers.DateTimeField(required=False, allow_null=True, default=None)


class RegistrationTokenShape(serializers.ModelSerializer[RegistrationToken]):
    created_by = PersonName()

    class Meta:
        model = RegistrationToken
        fields = ["id", "hint", "created_by", "created_at", "expires_at", "revoked_at", "last_used_at"]


class RegistrationTokenShown(RegistrationTokenShape):
    token = serializers.CharField(help_text="Shown this once.")

    class Meta(RegistrationTokenShape.Meta):
        fields = [*RegistrationTokenShape.Meta.fields, "token"]
