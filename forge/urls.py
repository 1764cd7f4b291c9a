"""Which room answers which address? The composition root for Django's views."""

from django.contrib import admin
from django.urls import include, path

admin.site.site_header = admin.site.site_title = "Forge CI"
admin.site.index_title = "Operation"

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/", include("ci.api.urls")),
    path("", include("ci.web.urls")),
    # Owner names take any first segment, so the forge comes last.
    path("", include("forge.web.urls")),
]
