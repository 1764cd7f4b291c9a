"""Which page answers which address of the forge? Owner names take any first segment, so these routes come last."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import URLPattern, URLResolver, path, register_converter

from forge.web import access_tokens, blob, branches, commits, home, members, raw, repositories, settings, tree
from forge.web.converters import GitPathConverter
from forge.web.git_errors import reading_git

register_converter(GitPathConverter, "gitpath")

urlpatterns: list[URLPattern | URLResolver] = [
    path("", home.home, name="home"),
    path("login/", LoginView.as_view(redirect_authenticated_user=False), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("new/", repositories.new_repository, name="new_repository"),
    path("settings/tokens/", access_tokens.access_tokens, name="access_tokens"),
    path("settings/tokens/<int:token_id>/revoke/", access_tokens.access_token_revoke, name="access_token_revoke"),
    path("<str:owner>/", home.owner, name="owner"),
    path("<str:owner>/<str:name>/", reading_git(tree.repository), name="repository"),
    path("<str:owner>/<str:name>/tree/<gitpath:rest>", reading_git(tree.tree), name="tree"),
    path("<str:owner>/<str:name>/blob/<gitpath:rest>", reading_git(blob.blob), name="blob"),
    path("<str:owner>/<str:name>/raw/<gitpath:rest>", reading_git(raw.raw), name="raw"),
    path("<str:owner>/<str:name>/commits/<gitpath:rest>", reading_git(commits.commits), name="commits"),
    path("<str:owner>/<str:name>/commit/<str:sha>/", reading_git(commits.commit), name="commit"),
    path("<str:owner>/<str:name>/branches/", reading_git(branches.branches), name="branches"),
    path("<str:owner>/<str:name>/settings/", reading_git(settings.repository_settings), name="repository_settings"),
    path("<str:owner>/<str:name>/settings/delete/", reading_git(settings.repository_delete), name="repository_delete"),
    path("<str:owner>/<str:name>/settings/members/", members.members, name="members"),
    path("<str:owner>/<str:name>/settings/members/<int:member_id>/role/", members.member_role, name="member_role"),
    path(
        "<str:owner>/<str:name>/settings/members/<int:member_id>/remove/", members.member_remove, name="member_remove"
    ),
]
