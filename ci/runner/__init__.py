"""What is the bundled runner, and which version of it is this?"""

VERSION = "1.0.0"

__all__ = ["VERSION"]
