"""Who calls?"""

from rest_framework.authentication import BaseAuthentication


class AccessTokenAuthentication(BaseAuthentication):
    """Bearer with a personal access token."""

    def authenticate(self, request):
        return None
