"""Which address has which call of the owners' API?"""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
