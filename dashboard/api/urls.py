"""URL patterns for programs."""

from django.urls import path

from dashboard.api.deployments import deployments
from dashboard.api.docs_page import reference
from dashboard.api.prometheus import metrics
from dashboard.api.read.router import API
from dashboard.api.readiness import readyz
from dashboard.api.views import gate, openapi

urlpatterns = [
    path("metrics", metrics, name="metrics"),
    path("readyz", readyz, name="readyz"),
    path("api/v1/deployments", deployments, name="deployments"),
    path("api/v1/gate", gate, name="gate"),
    path("api/v1/openapi.json", openapi, name="openapi"),
    path("api/v1/", reference, name="api_reference"),
    path("api/v1/", API.urls),
]
