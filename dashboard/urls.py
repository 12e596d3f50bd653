"""Every address of the dashboard."""

from django.urls import include, path

urlpatterns = [
    path("", include("dashboard.common.urls")),
    path("", include("dashboard.ingest.urls")),
    path("accounts/", include("allauth.account.urls")),
    path("", include("dashboard.ui.urls")),
]
