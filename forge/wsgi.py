"""Django itself, as the WSGI application that forge.asgi mounts."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "forge.settings")
application = get_wsgi_application()
