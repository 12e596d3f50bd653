"""URL patterns of the liveness check."""

from django.urls import path

from dashboard.common.health import healthz

urlpatterns = [path("healthz", healthz, name="healthz")]
