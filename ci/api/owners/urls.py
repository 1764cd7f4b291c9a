"""Which address has which call of the owners' API?"""

from django.urls import URLPattern, URLResolver, include, path

from ci.api.owners import (
    artifacts,
    caches,
    deployments,
    environments,
    github_repository,
    jobs,
    members,
    repositories,
    runner_sets,
    runners,
    runs,
    values,
    workflows,
)

_values: list[URLPattern | URLResolver] = [
    path("secrets", values.SecretsView.as_view()),
    path("secrets/<row_name:key>", values.SecretView.as_view()),
    path("variables", values.VariablesView.as_view()),
    path("variables/<row_name:key>", values.VariableView.as_view()),
]

# Each a whole route: the name of an environment may hold slashes, and where it ends only what follows tells.
_ENVIRONMENT = "environments/<environment_name:environment>"
_environments: list[URLPattern | URLResolver] = [
    path(f"{_ENVIRONMENT}/secrets", values.SecretsView.as_view()),
    path(f"{_ENVIRONMENT}/secrets/<row_name:key>", values.SecretView.as_view()),
    path(f"{_ENVIRONMENT}/variables", values.VariablesView.as_view()),
    path(f"{_ENVIRONMENT}/variables/<row_name:key>", values.VariableView.as_view()),
    path(_ENVIRONMENT, environments.EnvironmentView.as_view()),
]

_runners: list[URLPattern | URLResolver] = [
    path("runners", runners.RunnersView.as_view()),
    path("runners/<row_id:runner_id>", runners.RunnerView.as_view()),
    path("runner-sets", runner_sets.RunnerSetsView.as_view()),
    path("runner-sets/<row_id:set_id>", runner_sets.RunnerSetView.as_view()),
    path("runner-sets/<row_id:set_id>/recover", runner_sets.RunnerSetRecoverView.as_view()),
    path("runner-sets/<row_id:set_id>/runners", runner_sets.RunnerSetRunnersView.as_view()),
    path("registration-tokens", runners.RegistrationTokensView.as_view()),
    path("registration-tokens/<row_id:token_id>", runners.RegistrationTokenView.as_view()),
]

_repository: list[URLPattern | URLResolver] = [
    path("members", members.MembersView.as_view()),
    path("members/<row_name:username>", members.MemberView.as_view()),
    path("workflows", workflows.WorkflowsView.as_view()),
    path("workflows/<row_name:file>", workflows.WorkflowView.as_view()),
    path("workflows/<row_name:file>/dispatches", workflows.DispatchView.as_view()),
    path("dispatches", workflows.RepositoryDispatchView.as_view()),
    path("runs", runs.RunsView.as_view()),
    path("runs/<row_id:run_id>", runs.RunView.as_view()),
    path("runs/<row_id:run_id>/jobs", runs.RunJobsView.as_view()),
    path("runs/<row_id:run_id>/cancel", runs.RunCancelView.as_view()),
    path("runs/<row_id:run_id>/force-cancel", runs.RunForceCancelView.as_view()),
    path("runs/<row_id:run_id>/rerun", runs.RunRerunView.as_view()),
    path("runs/<row_id:run_id>/rerun-failed", runs.RunRerunFailedView.as_view()),
    path("jobs/<row_id:job_id>", jobs.JobView.as_view()),
    path("jobs/<row_id:job_id>/logs", jobs.JobLogsView.as_view()),
    path("jobs/<row_id:job_id>/cancel", jobs.JobCancelView.as_view()),
    path("jobs/<row_id:job_id>/rerun", jobs.JobRerunView.as_view()),
    path("deployments", deployments.DeploymentsView.as_view()),
    path("environments", environments.EnvironmentsView.as_view(), {"scope": "repository"}),
    path("", include(_environments), {"scope": "environment"}),
    path("", include([*_values, *_runners]), {"scope": "repository"}),
]

# Where clients of GitHub look.
_actions: list[URLPattern | URLResolver] = [
    path("artifacts", artifacts.ArtifactsView.as_view()),
    path("artifacts/<row_id:artifact_id>", artifacts.ArtifactView.as_view()),
    path("artifacts/<row_id:artifact_id>/zip", artifacts.ArtifactZipView.as_view()),
    path("runs/<row_id:run_id>/artifacts", artifacts.RunArtifactsView.as_view()),
    path("caches", caches.CachesView.as_view()),
    path("caches/<row_id:cache_id>", caches.CacheView.as_view()),
    path("cache/usage", caches.CacheUsageView.as_view()),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("repositories", repositories.RepositoriesView.as_view()),
    path("repositories/<row_name:owner>/<row_name:repository>", repositories.RepositoryView.as_view()),
    path("repositories/<row_name:owner>/<row_name:repository>/", include(_repository)),
    path("repos/<row_name:owner>/<row_name:repository>", github_repository.GitHubRepositoryView.as_view()),
    path("repos/<row_name:owner>/<row_name:repository>/actions/", include(_actions)),
    path("user/", include([*_values, *_runners]), {"scope": "user"}),
    path("instance/", include([*_values, *_runners]), {"scope": "instance"}),
]
