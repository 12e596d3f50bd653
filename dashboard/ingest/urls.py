"""The addresses of ingest."""

from django.urls import path

from dashboard.ingest.views import reports_receive

urlpatterns = [path("api/v1/reports", reports_receive, name="reports")]
