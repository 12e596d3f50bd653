"""URL patterns of the dashboard."""

from allauth.account import urls as account_urls
from allauth.socialaccount import urls as provider_urls
from django.urls import include, path

from dashboard.accounts import oidc
from dashboard.accounts.admin_site import SITE

# Pages that invited people need. Other pages of allauth send mail, and a mail server is optional.
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
    path("accounts/", include([one for one in account_urls.urlpatterns if one.name in SIGN_IN])),
    path("accounts/2fa/", include("allauth.mfa.urls")),
    path("accounts/sessions/", include("allauth.usersessions.urls")),
    path("accounts/provider/", include(provider_urls)),
    path("accounts/oidc/<str:provider_id>/login/", oidc.login, name="openid_connect_login"),
    path(
        "accounts/oidc/<str:provider_id>/login/callback/",
        oidc.callback,
        name="openid_connect_callback",
    ),
    path("admin/", SITE.urls),
    path("", include("dashboard.ui.pages.account.urls")),
    path("", include("dashboard.ui.urls")),
]

handler500 = "dashboard.common.database_unavailable.handle_server_error"
