"""Which page answers which address of CI? Included before the forge's own, whose owner names take anything."""

from django.urls import URLPattern, URLResolver, include, path

from ci.web import (
    artifacts,
    badge,
    caches,
    deployments,
    environments,
    job,
    run,
    runner_sets,
    runners,
    runs,
    secrets,
    storage,
    variables,
    workflows,
)

_run: list[URLPattern | URLResolver] = [
    path("", run.run, name="run"),
    path("status/", run.run_status, name="run_status"),
    path("events/", run.run_events, name="run_events"),
    path("cancel/", run.run_cancel, name="run_cancel"),
    path("force-cancel/", run.run_force_cancel, name="run_force_cancel"),
    path("rerun/", run.run_rerun, name="run_rerun"),
    path("approve/", run.run_approve, name="run_approve"),
    path("artifacts/", artifacts.run_artifacts, name="run_artifacts"),
    path("artifacts/<int:artifact_id>/", artifacts.artifact_download, name="artifact_download"),
    path("artifacts/<int:artifact_id>/delete/", artifacts.artifact_delete, name="artifact_delete"),
    path("jobs/<int:job_id>/", job.job, name="job"),
    path("jobs/<int:job_id>/log/", job.job_log_lines, name="job_log_lines"),
    path("jobs/<int:job_id>/log/raw/", job.job_log_raw, name="job_log_raw"),
    path("jobs/<int:job_id>/cancel/", job.job_cancel, name="job_cancel"),
    path("jobs/<int:job_id>/rerun/", job.job_rerun, name="job_rerun"),
]

_actions: list[URLPattern | URLResolver] = [
    path("", runs.runs, name="runs"),
    path("caches/", caches.caches, name="caches"),
    path("caches/delete/", caches.cache_delete, name="cache_delete"),
    path("workflows/<str:file>/", workflows.workflow, name="workflow"),
    path("workflows/<str:file>/dispatch/", workflows.workflow_dispatch, name="workflow_dispatch"),
    path("workflows/<str:file>/switch/", workflows.workflow_switch, name="workflow_switch"),
    path("workflows/<str:file>/badge.svg", badge.badge, name="badge"),
    path("runs/<int:run_id>/", include(_run)),
]

_environments: list[URLPattern | URLResolver] = [
    path("", environments.environments, name="environments"),
    path("<int:environment_id>/secrets/", secrets.environment_secrets, name="environment_secrets"),
    path("<int:environment_id>/variables/", variables.environment_variables, name="environment_variables"),
    path("<int:environment_id>/delete/", environments.environment_delete, name="environment_delete"),
]


def _sets(address: str, kind: str, prefix: str = "") -> list[URLPattern | URLResolver]:
    """The pages of runner sets, alike in each place."""
    views = {
        "": ("runner_sets", runner_sets.runner_sets),
        "new/": ("runner_set_new", runner_sets.runner_set_new),
        "<int:set_id>/": ("runner_set", runner_sets.runner_set),
        "<int:set_id>/status/": ("runner_set_status", runner_sets.runner_set_status),
        "<int:set_id>/edit/": ("runner_set_edit", runner_sets.runner_set_edit),
        "<int:set_id>/delete/": ("runner_set_delete", runner_sets.runner_set_delete),
        "<int:set_id>/recover/": ("runner_set_recover", runner_sets.runner_set_recover),
    }
    return [
        path(f"{address}{end}", view, {"kind": kind}, name=f"{prefix}{name}") for end, (name, view) in views.items()
    ]


urlpatterns: list[URLPattern | URLResolver] = [
    *_sets("runners/sets/", "instance", "instance_"),
    *_sets("settings/runners/sets/", "owner", "owner_"),
    path("runners/", runners.instance_runners, name="instance_runners"),
    path("settings/instance/secrets/", secrets.instance_secrets, name="instance_secrets"),
    path("settings/instance/variables/", variables.instance_variables, name="instance_variables"),
    path("settings/runners/", runners.owner_runners, name="owner_runners"),
    path("settings/secrets/", secrets.owner_secrets, name="owner_secrets"),
    path("settings/variables/", variables.owner_variables, name="owner_variables"),
    path("<str:owner>/<str:name>/actions/", include(_actions)),
    path("<str:owner>/<str:name>/deployments/", deployments.deployments, name="deployments"),
    path("<str:owner>/<str:name>/settings/environments/", include(_environments)),
    *_sets("<str:owner>/<str:name>/settings/runners/sets/", "repository"),
    path("<str:owner>/<str:name>/settings/runners/", runners.runners, name="runners"),
    path("<str:owner>/<str:name>/settings/storage/", storage.storage, name="storage"),
    path("<str:owner>/<str:name>/settings/secrets/", secrets.secrets, name="secrets"),
    path("<str:owner>/<str:name>/settings/variables/", variables.variables, name="variables"),
]
