"""Admin site: the administration of the whole server, for staff.

The site shows rows read-only; its actions call the same services as the other pages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from csp.constants import SELF, UNSAFE_EVAL, UNSAFE_INLINE
from csp.decorators import csp_replace
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.templatetags.static import static
from django.urls import reverse
from unfold.admin import ModelAdmin
from unfold.sites import UnfoldAdminSite

from dashboard.accounts.reauthentication import require_reauthentication

ADMIN_CSP = {"script-src": [SELF, UNSAFE_EVAL], "style-src": [SELF, UNSAFE_INLINE]}
"""Alpine and the number bars of unfold need these sources. Every other page forbids both."""


def read_user_theme(request: HttpRequest) -> str | None:
    """The theme that the user chose for the pages; None follows the system."""
    theme = getattr(request.user, "theme", "system")
    return None if theme == "system" else theme


def theme_script(request: HttpRequest) -> str:
    """URL of the script that applies the user's theme.

    Without the script, the theme that unfold keeps in the browser would override the choice.
    """
    return static("ui/admin-theme.js")


class AdminSite(UnfoldAdminSite):  # type: ignore[misc]  # unfold has no types
    """Admin site for staff, with the sign-in of every other page. Each POST requires a recent
    reauthentication."""

    def has_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.is_staff)

    def admin_view(
        self, view: Callable[..., HttpResponse], cacheable: bool = False
    ) -> Callable[..., HttpResponse]:
        """Wraps a page of the site: redirects to sign-in, checks for staff, reauthenticates on
        POST."""
        inner = csp_replace(ADMIN_CSP)(super().admin_view(view, cacheable))

        @wraps(view)
        def through(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if not request.user.is_authenticated:
                return redirect_to_login(request.get_full_path())
            if not self.has_permission(request):
                raise PermissionDenied("The administration is for staff of this server.")
            if request.method == "POST":
                require_reauthentication(request)
            answer: HttpResponse = inner(request, *args, **kwargs)
            return answer

        return through

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return redirect_to_login(reverse("admin:index"))

    def logout(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return redirect("account_logout")

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return redirect("account_change_password")


SITE = AdminSite()


class ReadOnlyAdmin(ModelAdmin):  # type: ignore[misc]
    """Read-only admin: rows cannot be added, changed or deleted by hand."""

    list_per_page = 50
    show_full_result_count = False
    list_filter_submit = True

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return SITE.has_permission(request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return SITE.has_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
