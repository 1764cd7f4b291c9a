"""Names the forge to Django."""

from django.apps import AppConfig


class ForgeConfig(AppConfig):
    name = "forge"
    verbose_name = "Forge"
