"""The address that asks whether the process lives."""

from django.urls import path

from dashboard.common.health import healthz

urlpatterns = [path("healthz", healthz, name="healthz")]
