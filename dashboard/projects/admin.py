"""Admin classes for projects, members, invitations and keys, for operators of the server. An
exposed key can be revoked here."""

from __future__ import annotations

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from dashboard.accounts.admin_site import SITE, ReadOnlyAdmin
from dashboard.accounts.models import User
from dashboard.projects.models import Invitation, Key, Member, Project
from dashboard.projects.services import key_revoke


@admin.register(Project, site=SITE)
class ProjectAdmin(ReadOnlyAdmin):
    """Projects with the settings that differ from the defaults. `manage.py retention`, `limits` and
    `rate` change the settings."""

    list_display = ("name", "slug", "created_at", "time_zone")
    search_fields = ("name", "slug")
    fields = ("name", "slug", "created_at", "time_zone", "settings")


@admin.register(Member, site=SITE)
class MemberAdmin(ReadOnlyAdmin):
    """Memberships, read-only; admins of a project change them."""

    list_display = ("user", "project", "role", "created_at")
    list_filter = ("role",)
    search_fields = ("user__username", "project__slug")
    list_select_related = ("user", "project")


@admin.register(Invitation, site=SITE)
class InvitationAdmin(ReadOnlyAdmin):
    """Invitations; the links are not stored."""

    list_display = (
        "project",
        "role",
        "note",
        "made_by",
        "created_at",
        "expires_at",
        "accepted_by",
        "revoked_at",
    )
    list_select_related = ("project", "made_by", "accepted_by")
    ordering = ("-created_at",)


@admin.register(Key, site=SITE)
class KeyAdmin(ReadOnlyAdmin):
    """Keys without their secret parts."""

    list_display = (
        "lookup",
        "kind",
        "project",
        "name",
        "created_at",
        "last_used_at",
        "expires_at",
        "exposed_at",
        "revoked_at",
    )
    list_filter = ("kind",)
    search_fields = ("lookup", "name", "project__slug")
    list_select_related = ("project",)
    fields = (
        "project",
        "kind",
        "name",
        "lookup",
        "created_at",
        "created_by",
        "expires_at",
        "revoked_at",
        "exposed_at",
        "last_used_at",
    )
    ordering = ("-created_at",)
    actions = ("revoke",)

    @admin.action(description="Revoke immediately")
    def revoke(self, request: HttpRequest, queryset: QuerySet[Key]) -> None:
        """Revokes the selected keys; a revoked key stays unchanged."""
        assert isinstance(request.user, User)
        keys = list(queryset.select_related("project"))
        for key in keys:
            key_revoke(key=key, actor=request.user, address=request.META.get("REMOTE_ADDR"))
        messages.success(
            request, f"{len(keys)} revoked, and recorded in the audit log of their projects."
        )
