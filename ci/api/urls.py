"""Which address below /api/ has which call?"""

from django.urls import include, path, re_path

from ci.api import converters, nothing, schema

__all__ = ["converters", "urlpatterns"]  # the address patterns below name converters that importing it registers

urlpatterns = [
    path("runner/v1/", include("ci.api.runner.urls")),
    path("v1/", include("ci.api.owners.urls")),
    path("schema/", schema.SchemaView.as_view(), name="schema"),
    path("docs/", schema.DocsView.as_view(), name="docs"),
    re_path("", nothing.NothingView.as_view()),
]
