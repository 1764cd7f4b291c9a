"""Which shapes do runner sets, and the runners that they start, have in the owners' API?"""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from ci.api.owners.serializers import Expected
from ci.lifecycle.runner_sets import MAX_LABELS, MAX_RUNNERS
from ci.models import LaunchAttempt, Runner, RunnerPhase, RunnerSet

_TEMPLATE = "What the launcher needs to know; its keys are in docs/launchers.md."
_LAUNCHER = "`local` takes an administrator of the instance: such jobs run as the server's own user."
_REPOSITORIES = "Only these may use it, as owner/name; none: all in its scope."
MOST_REPOSITORIES = 200


class RunnerSetShape(serializers.ModelSerializer[RunnerSet]):
    labels = serializers.ListField(child=serializers.CharField())
    repositories = serializers.SerializerMethodField(help_text=_REPOSITORIES)
    launcher = serializers.ChoiceField(choices=RunnerSet.Launcher.choices)
    template = serializers.DictField(help_text=_TEMPLATE)
    phase = serializers.ChoiceField(choices=RunnerSet.Phase.choices)
    busy = serializers.IntegerField(help_text="Runners that have a job.")
    idle = serializers.IntegerField(help_text="Runners that wait for one.")
    starting = serializers.IntegerField()
    leaving = serializers.IntegerField(help_text="Ended, or told to go: their processes may still be there.")
    on_new_revision = serializers.IntegerField(source="current", help_text="Runners of `spec_revision`.")

    class Meta:
        model = RunnerSet
        fields = [
            *("id", "name", "labels", "minimum", "maximum", "maximum_per_repository", "repositories"),
            *("launcher", "template", "spec_revision", "phase", "desired", "assigned"),
            *("busy", "idle", "starting", "leaving", "on_new_revision"),
            *("trouble", "troubled_until", "parked_at", "deleting_at", "created_at", "version"),
        ]

    def get_repositories(self, runner_set: RunnerSet) -> list[str]:
        return sorted(str(repository) for repository in runner_set.repositories.all())


def _labels(**options: Any) -> serializers.ListField:
    label = serializers.CharField(max_length=100)
    return serializers.ListField(child=label, min_length=1, max_length=MAX_LABELS, **options)


def _count(text: str, *, least: int = 0, **options: Any) -> serializers.IntegerField:
    return serializers.IntegerField(min_value=least, max_value=MAX_RUNNERS, help_text=text, **options)


def _repositories(**options: Any) -> serializers.ListField:
    name = serializers.CharField(max_length=300)
    return serializers.ListField(child=name, max_length=MOST_REPOSITORIES, help_text=_REPOSITORIES, **options)


class NewRunnerSet(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=100)
    labels = _labels()
    minimum = _count("Idle runners to keep ready.", default=0)
    maximum = _count("Runners that may exist at once.", default=1)
    maximum_per_repository = _count(
        "Jobs of one repository that may run here at once; null: no limit.", least=1, allow_null=True, default=None
    )
    repositories = _repositories(default=list)
    launcher = serializers.ChoiceField(choices=RunnerSet.Launcher.choices, help_text=_LAUNCHER)
    template = serializers.DictField(default=dict, help_text=_TEMPLATE)


class RunnerSetChange(Expected):
    name = serializers.CharField(max_length=100, required=False)
    labels = _labels(required=False)
    minimum = _count("Idle runners to keep ready.", required=False)
    maximum = _count("Runners that may exist at once.", required=False)
    maximum_per_repository = _count(
        "Jobs of one repository that may run here at once; null: no limit.", least=1, allow_null=True, required=False
    )
    repositories = _repositories(required=False)
    launcher = serializers.ChoiceField(choices=RunnerSet.Launcher.choices, help_text=_LAUNCHER, required=False)
    template = serializers.DictField(required=False, help_text=_TEMPLATE)


class RunnerSetDeletion(Expected):
    force = serializers.BooleanField(default=False, help_text="End the jobs of its runners at once, as lost.")


class LaunchAttemptShape(serializers.ModelSerializer[LaunchAttempt]):
    class Meta:
        model = LaunchAttempt
        fields = ["number", "started_at", "ended_at", "exit_code", "reason", "failed"]


class SetRunnerShape(serializers.ModelSerializer[Runner]):
    phase = serializers.ChoiceField(choices=RunnerPhase.choices)
    ready = serializers.BooleanField(help_text="Whether its process is up.")
    launch_attempts = LaunchAttemptShape(many=True, help_text="The processes started for it, the first one first.")

    class Meta:
        model = Runner
        fields = [
            *("id", "name", "phase", "ready", "reason", "spec_revision", "failures", "used_job_id", "used_job_name"),
            *("created_at", "next_attempt_at", "launched_at", "registered_at", "idle_since", "ended_at"),
            *("deleting_at", "stopped_at", "exit_code", "launch_attempts", "version"),
        ]
