"""Every address of the dashboard."""

from django.urls import include, path

urlpatterns = [
    path("accounts/", include("allauth.account.urls")),
]
