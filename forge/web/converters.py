"""How do git's names travel in an address?"""


class GitPathConverter:
    """Anything at all: unlike Django's own `path`, also a file name that holds a line break."""

    regex = r"[\s\S]+"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value
