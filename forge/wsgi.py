"""Django itself, as the WSGI application that forge.asgi mounts."""

import os

from django.core.wsgi import get_wsgi_application

from forge.session_names import name_sessions

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "forge.settings")
application = get_wsgi_application()
name_sessions("web")
