"""Django app configuration of ingest."""

from django.apps import AppConfig


class IngestConfig(AppConfig):
    """Ingest: accepts reports and owns the rows that it locks and answers with."""

    name = "dashboard.ingest"
    label = "ingest"
