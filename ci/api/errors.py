"""What does an error look like?"""

from rest_framework.views import exception_handler

__all__ = ["exception_handler"]
