"""Names CI to Django."""

from django.apps import AppConfig


class CiConfig(AppConfig):
    name = "ci"
    verbose_name = "CI"
