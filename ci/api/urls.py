"""Which address below /api/ has which call?"""

from django.urls import include, path, re_path

from ci.api import converters, id_tokens, nothing, schema

__all__ = ["converters", "urlpatterns"]  # the address patterns below name converters that importing it registers

urlpatterns = [
    path("runner/v1/", include("ci.api.runner.urls")),
    path("v1/", include("ci.api.owners.urls")),
    # These addresses are not ours to choose: runners and verifiers of id tokens know them.
    path("actions/_apis/pipelines/workflows/<row_id:run_id>/idtoken", id_tokens.IdTokenView.as_view()),
    path("actions/.well-known/openid-configuration", id_tokens.ConfigurationView.as_view()),
    path("actions/.well-known/keys", id_tokens.KeysView.as_view()),
    path("schema/", schema.SchemaView.as_view(), name="schema"),
    path("docs/", schema.DocsView.as_view(), name="docs"),
    re_path("", nothing.NothingView.as_view()),
]
