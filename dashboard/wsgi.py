"""WSGI application that waitress or granian serves."""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from dashboard.common.connection_pool import configure_connection_pool
from dashboard.common.gc_tuning import tune_garbage_collection
from dashboard.common.url_prefix import mount_under_prefix
from dashboard.environment.settings import env_check

env_check()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
configure_connection_pool(settings.DATABASES["default"])
_django = get_wsgi_application()

from dashboard.ingest.wsgi_router import ReportsRouter  # noqa: E402  # its models load after Django is set up

application = mount_under_prefix(ReportsRouter(_django), settings.PREFIX)
tune_garbage_collection()
