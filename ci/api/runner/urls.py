"""Which address has which call of the runner API v1?"""

from django.urls import path

from ci.api.runner import jobs, runners

urlpatterns = [
    path("runners", runners.RunnersView.as_view()),
    path("runners/self", runners.SelfView.as_view()),
    path("jobs/fetch", jobs.FetchView.as_view()),
    path("jobs/<row_id:job_id>/heartbeat", jobs.HeartbeatView.as_view()),
    path("jobs/<row_id:job_id>/steps", jobs.StepsView.as_view()),
    path("jobs/<row_id:job_id>/log", jobs.LogView.as_view()),
    path("jobs/<row_id:job_id>/complete", jobs.CompleteView.as_view()),
]
