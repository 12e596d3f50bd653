"""URL routes of ingest."""

from django.urls import path

from dashboard.ingest.otlp.endpoint import metrics_receive
from dashboard.ingest.views import reports_receive

urlpatterns = [
    path("api/v1/reports", reports_receive, name="reports"),
    path("api/v1/otlp/v1/metrics", metrics_receive, name="otlp_metrics"),
]
