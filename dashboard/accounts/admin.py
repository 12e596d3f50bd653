"""Admin classes for users, the audit log and heartbeats, for operators of the server."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from dashboard.accounts.admin_site import SITE, ReadOnlyAdmin
from dashboard.accounts.models import AuditEntry, User
from dashboard.accounts.operator_actions import (
    OperatorActionError,
    user_active_set,
    user_second_step_remove,
    user_sign_out,
)
from dashboard.common.models import Heartbeat


@admin.register(User, site=SITE)
class UserAdmin(ReadOnlyAdmin):
    """Accounts of the server, with the actions that an operator can take on them."""

    list_display = ("username", "email", "is_active", "is_staff", "last_login", "date_joined")
    list_filter = ("is_active", "is_staff")
    search_fields = ("username", "email")
    fields = (
        "username",
        "email",
        "first_name",
        "last_name",
        "is_active",
        "is_staff",
        "last_login",
        "date_joined",
        "theme",
    )
    actions = ("close", "open_again", "second_step", "sign_out")

    @admin.action(description="Close accounts: no sign-in, and signed out now")
    def close(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        """Closes the accounts of people who have left."""
        self._apply_to_each(
            request,
            queryset,
            lambda user: user_active_set(
                user=user, active=False, actor=_actor(request), address=_client_address(request)
            ),
        )

    @admin.action(description="Reopen accounts")
    def open_again(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        """Reopens closed accounts."""
        self._apply_to_each(
            request,
            queryset,
            lambda user: user_active_set(
                user=user, active=True, actor=_actor(request), address=_client_address(request)
            ),
        )

    @admin.action(description="Remove second factor")
    def second_step(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        """Removes the second factor of people who lost their app and recovery codes."""
        self._apply_to_each(
            request,
            queryset,
            lambda user: user_second_step_remove(
                user=user, actor=_actor(request), address=_client_address(request)
            ),
        )

    @admin.action(description="Sign out everywhere")
    def sign_out(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        """Ends every session of the selected users."""
        self._apply_to_each(
            request,
            queryset,
            lambda user: user_sign_out(
                user=user, actor=_actor(request), address=_client_address(request)
            ),
        )

    def _apply_to_each(
        self, request: HttpRequest, queryset: QuerySet[User], mend: Callable[[User], None]
    ) -> None:
        for user in queryset:
            try:
                mend(user)
            except OperatorActionError as error:
                messages.error(request, f"{user.get_username()}: {error}")
            else:
                messages.success(
                    request, f"{user.get_username()}: done, and recorded in the audit log."
                )


@admin.register(AuditEntry, site=SITE)
class AuditAdmin(ReadOnlyAdmin):
    """Audit entries of the whole server, read-only."""

    list_display = ("at", "actor_name", "action", "subject", "project_id", "address")
    list_filter = ("action",)
    search_fields = ("actor_name", "subject")
    fields = ("at", "project_id", "actor_name", "action", "subject", "before", "after", "address")
    ordering = ("-at", "-pk")


@admin.register(Heartbeat, site=SITE)
class HeartbeatAdmin(ReadOnlyAdmin):
    """Heartbeats of workers of the last day, and of beat before an upgrade."""

    list_display = ("name", "kind", "seen_at", "folded_at", "broker")


def _actor(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user


def _client_address(request: HttpRequest) -> str | None:
    return request.META.get("REMOTE_ADDR")
