"""Django's entry for this app."""

from django.apps import AppConfig


class IngestConfig(AppConfig):
    """Takes reports and owns what it must lock and answer with."""

    name = "dashboard.ingest"
    label = "ingest"
