"""The Celery application: tasks say "drain what the tables say", so losing the broker loses no work."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
app = Celery("compilewatch")
