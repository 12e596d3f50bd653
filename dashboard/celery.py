"""The Celery application: tasks say "drain what the tables say", so losing the broker loses no work."""

import os

from celery import Celery

from dashboard.env import env_check

env_check()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

app = Celery("compilewatch")
app.config_from_object("django.conf:settings", namespace="CELERY")
# In embedded mode the tasks run in threads of the web process, which would otherwise meet Celery's default application.
app.set_default()
app.autodiscover_tasks()
