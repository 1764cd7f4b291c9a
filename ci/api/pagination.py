"""How are lists cut into pages? `?page=` and `?per_page=`, at most 100."""

from __future__ import annotations

from rest_framework.pagination import PageNumberPagination


class Pages(PageNumberPagination):
    page_size = 30
    page_size_query_param = "per_page"
    max_page_size = 100
