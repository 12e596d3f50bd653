"""The WSGI application that waitress or gunicorn serves."""

import os

from django.core.wsgi import get_wsgi_application

from dashboard.env import env_check

env_check()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
application = get_wsgi_application()
