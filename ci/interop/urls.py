"""Which addresses are known to runners and clients that exist already? Those that are plain Django views."""

from __future__ import annotations

from django.urls import path

from ci.interop import artifacts_v3, artifacts_v4, caches_v1, caches_v2, step_summaries, twirp

# By name; each module of a service brings its table of methods.
SERVICES: twirp.Services = {
    "ArtifactService": artifacts_v4.METHODS,
    "CacheService": caches_v2.METHODS,
}

urlpatterns = [
    path(f"twirp/{twirp.PACKAGE}.<str:service>/<str:method>", twirp.view(SERVICES)),
    *artifacts_v3.urlpatterns,
    *caches_v1.urlpatterns,
    *step_summaries.urlpatterns,
]
