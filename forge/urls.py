"""Which room answers which address? The composition root for Django's views."""

from django.contrib import admin
from django.templatetags.static import static
from django.urls import include, path
from django.views.generic import RedirectView

admin.site.site_header = admin.site.site_title = "Forge CI"
admin.site.index_title = "Operation"

handler500 = "forge.web.unavailable.answer"

urlpatterns = [
    path("admin/health/", include("ci.admin.health")),
    path("admin/", admin.site.urls),
    # Before the API of this server: some of these addresses lie below it.
    path("", include("ci.interop.urls")),
    path("api/", include("ci.api.urls")),
    path("metrics", include("ci.api.metrics")),
    # Browsers ask for it beside whatever is no page of ours: a badge, a raw file, an answer of the API.
    path("favicon.ico", RedirectView.as_view(url=static("forge/icon.svg"))),
    path("", include("ci.web.urls")),
    # Owner names take any first segment, so the forge comes last.
    path("", include("forge.web.urls")),
]
