"""Which request bodies does the API take? JSON objects."""

from rest_framework.parsers import JSONParser


class ObjectParser(JSONParser):
    """JSON."""
