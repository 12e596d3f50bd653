"""The WSGI application that waitress or granian serves."""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from dashboard.common.connection_pool import connections_bound
from dashboard.common.gc_tuning import garbage_seldom
from dashboard.common.url_prefix import under_prefix
from dashboard.environment.settings import env_check

env_check()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
connections_bound(settings.DATABASES["default"])
_django = get_wsgi_application()

from dashboard.ingest.wsgi_router import ReportsDoor  # noqa: E402  # its models load after Django is set up

application = under_prefix(ReportsDoor(_django), settings.PREFIX)
garbage_seldom()
