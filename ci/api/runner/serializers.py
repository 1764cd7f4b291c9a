"""Which shapes have the calls and answers of the runner API v1? Shapes and bounds only: the lifecycle decides."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework import serializers

from ci.api.fields import CutField, LogLinesField, SecondsField
from ci.models import CancelReason, Conclusion, Runner, RunnerPhase, StepState

LONGEST_WAIT = 50
LARGEST_TEXT = 1024 * 1024
_INT = 2**31 - 1
_MOST_STEPS = 1000
_MOST_ANNOTATIONS = 100
_MOST_OUTPUTS = 100
REPORTED = [(value, value) for value in (Conclusion.SUCCESS, Conclusion.FAILURE, Conclusion.CANCELLED)]


class Labels(serializers.ListField):
    child = serializers.CharField(max_length=100)

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=100, **options)


class RegisterRequest(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=100)
    labels = Labels(allow_empty=False)
    ephemeral = serializers.BooleanField(default=False, help_text="Takes one job, ever, and is then gone.")
    version = serializers.CharField(max_length=50, default="", allow_blank=True)
    os = serializers.CharField(max_length=50, default="", allow_blank=True)
    arch = serializers.CharField(max_length=50, default="", allow_blank=True)


class RegisteredRunner(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    labels = serializers.ListField(child=serializers.CharField())
    ephemeral = serializers.BooleanField()
    token = serializers.CharField(help_text="Shown this once.")


class RunnerSelf(serializers.ModelSerializer[Runner]):
    labels = serializers.ListField(child=serializers.CharField())
    phase = serializers.ChoiceField(choices=RunnerPhase.choices)
    version = serializers.CharField(source="agent_version")

    class Meta:
        model = Runner
        fields = ["id", "name", "labels", "paused", "ephemeral", "phase", "version", "os", "arch"]


class RunnerUpdate(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=100, required=False)
    labels = Labels(required=False, allow_empty=False)
    version = serializers.CharField(max_length=50, required=False, allow_blank=True)
    os = serializers.CharField(max_length=50, required=False, allow_blank=True)
    arch = serializers.CharField(max_length=50, required=False, allow_blank=True)


class FetchRequest(serializers.Serializer[Any]):
    POLL_ID = r"^[\x21-\x7e]{1,64}\Z"
    poll_id = serializers.RegexField(
        POLL_ID,
        trim_whitespace=False,
        help_text="Chosen by the runner, new for each job: the same again gets the same job, if its answer was lost.",
    )
    wait = SecondsField(largest=LONGEST_WAIT, default=0, help_text="How long the answer may wait for a job.")


class HeartbeatRequest(serializers.Serializer[Any]):
    wait = SecondsField(largest=LONGEST_WAIT, default=0, help_text="How long the answer may wait for a cancel.")


class HeartbeatResponse(serializers.Serializer[Any]):
    cancel = serializers.ChoiceField(choices=CancelReason.choices, allow_null=True)
    deadline = serializers.DateTimeField(allow_null=True, help_text="When the job's time is up.")
    force_at = serializers.DateTimeField(allow_null=True, help_text="When a cancelled job is ended without the runner.")
    now = serializers.DateTimeField(help_text="The server's clock, to count the two times above from.")


class Annotation(serializers.Serializer[Any]):
    level = serializers.ChoiceField(choices=["error", "warning", "notice"])
    message = CutField(longest=64 * 1024)
    title = CutField(longest=1000, required=False)
    path = CutField(longest=4096, required=False)
    line = serializers.IntegerField(min_value=0, max_value=_INT, required=False)
    end_line = serializers.IntegerField(min_value=0, max_value=_INT, required=False)
    column = serializers.IntegerField(min_value=0, max_value=_INT, required=False)
    end_column = serializers.IntegerField(min_value=0, max_value=_INT, required=False)


class Step(serializers.Serializer[Any]):
    number = serializers.IntegerField(min_value=1, max_value=10_000)
    name = CutField(longest=500)
    state = serializers.ChoiceField(choices=StepState.choices)
    conclusion = serializers.ChoiceField(choices=Conclusion.choices, required=False, allow_null=True)
    started_at = serializers.DateTimeField(required=False, allow_null=True)
    ended_at = serializers.DateTimeField(required=False, allow_null=True)
    first_line = serializers.IntegerField(min_value=0, max_value=_INT, required=False)
    line_count = serializers.IntegerField(min_value=0, max_value=_INT, required=False)
    annotations = serializers.ListField(child=Annotation(), max_length=_MOST_ANNOTATIONS, required=False)
    summary = serializers.CharField(
        max_length=LARGEST_TEXT, required=False, allow_blank=True, trim_whitespace=False, help_text="Markdown."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if (attrs["state"] == StepState.ENDED) != (attrs.get("conclusion") is not None):
            raise serializers.ValidationError({"conclusion": "A step has one if, and only if, its state is ended."})
        return attrs


class StepsRequest(serializers.Serializer[Any]):
    steps = serializers.ListField(child=Step(), max_length=_MOST_STEPS)


class LogRequest(serializers.Serializer[Any]):
    offset = serializers.IntegerField(min_value=0, max_value=_INT, help_text="The number of the first line sent.")
    lines = LogLinesField(
        help_text="Pairs of ISO time and text. Lines that are there already are skipped, those over 64 KiB are cut."
    )


class LogResponse(serializers.Serializer[Any]):
    next_offset = serializers.IntegerField()


class CompleteRequest(serializers.Serializer[Any]):
    conclusion = serializers.ChoiceField(choices=REPORTED)
    outputs = serializers.DictField(
        child=serializers.CharField(max_length=LARGEST_TEXT, allow_blank=True, trim_whitespace=False), default=dict
    )
    steps = serializers.ListField(child=Step(), max_length=_MOST_STEPS, default=list)
    environment_url = serializers.RegexField(
        r"^https?://",
        max_length=1000,
        allow_blank=True,
        default="",
        help_text="Where what the job deployed can be seen.",
    )

    def validate_outputs(self, outputs: dict[str, str]) -> dict[str, str]:
        if len(outputs) > _MOST_OUTPUTS or any(len(name) > 255 for name in outputs):
            raise serializers.ValidationError(f"At most {_MOST_OUTPUTS} outputs, names of at most 255 characters.")
        # GitHub docs, "Passing information between jobs": at most 1 MB for each job.
        if sum(len(name) + len(value) for name, value in outputs.items()) > LARGEST_TEXT:
            raise serializers.ValidationError("Outputs have at most 1 MiB together. Pass files as artifacts.")
        return outputs


class CompleteResponse(serializers.Serializer[Any]):
    conclusion = serializers.ChoiceField(choices=Conclusion.choices)
    reason = serializers.CharField(help_text="Why the job was cancelled; empty if it was not.", allow_blank=True)


class ClaimedJob(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    assignment = serializers.IntegerField(help_text="Counts how often the job was given to a runner.")
    token = serializers.CharField(help_text="For this job's calls, git and the API; it dies with the job.")
    name = serializers.CharField()
    key = serializers.CharField()
    run_id = serializers.IntegerField()
    attempt = serializers.IntegerField()
    timeout_minutes = serializers.FloatField()
    cancel_grace_seconds = serializers.IntegerField(default=settings.CANCEL_GRACE_SECONDS)
    log_offset = serializers.IntegerField()


class ClaimedWorkflow(serializers.Serializer[Any]):
    name = serializers.CharField()
    path = serializers.CharField()
    env = serializers.DictField()
    defaults = serializers.DictField()


class IdTokenRequest(serializers.Serializer[Any]):
    request_url = serializers.URLField()
    request_token = serializers.CharField()


class Runtime(serializers.Serializer[Any]):
    token = serializers.CharField(help_text="ACTIONS_RUNTIME_TOKEN: for artifacts and caches; it dies with the job.")
    runtime_url = serializers.URLField(help_text="ACTIONS_RUNTIME_URL")
    results_url = serializers.URLField(help_text="ACTIONS_RESULTS_URL")
    cache_url = serializers.URLField(help_text="ACTIONS_CACHE_URL")


class FetchResponse(serializers.Serializer[Any]):
    """Documentation only: the lifecycle's payload is sent as it is."""

    job = ClaimedJob()
    workflow = ClaimedWorkflow()
    definition = serializers.DictField(help_text="The job as its workflow file has it, expressions unevaluated.")
    contexts = serializers.DictField(help_text="github, needs, matrix, strategy, vars, secrets, inputs, job.")
    actions_sources = serializers.ListField(child=serializers.URLField())
    id_token = IdTokenRequest(
        allow_null=True,
        help_text="Of a job with `id-token: write`: what its programs see as ACTIONS_ID_TOKEN_REQUEST_….",
    )
    runtime = Runtime()
    masks = serializers.ListField(child=serializers.CharField(), help_text="Values never to be written to the log.")
