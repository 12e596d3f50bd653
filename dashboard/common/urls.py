"""The addresses that supervisors ask."""

from django.urls import path

from dashboard.common.health import healthz, readyz

urlpatterns = [path("healthz", healthz, name="healthz"), path("readyz", readyz, name="readyz")]
