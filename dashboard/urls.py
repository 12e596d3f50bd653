"""Every address of the dashboard."""

from allauth.account import urls as allauth_urls
from django.urls import include, path

# What people need who are invited. The rest of allauth's pages send mail, and a dashboard has no mail server of its own.
SIGN_IN = (
    "account_login",
    "account_logout",
    "account_signup",
    "account_inactive",
    "account_reauthenticate",
    "account_change_password",
)

urlpatterns = [
    path("", include("dashboard.common.urls")),
    path("", include("dashboard.ingest.urls")),
    path("", include("dashboard.api.urls")),
    path("accounts/", include([one for one in allauth_urls.urlpatterns if one.name in SIGN_IN])),
    path("", include("dashboard.ui.urls")),
]

handler500 = "dashboard.common.away.failed"
