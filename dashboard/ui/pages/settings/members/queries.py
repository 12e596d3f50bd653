"""Data of Settings > Members and Settings > API keys: members, open invitations, and keys of all
scopes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from dashboard.accounts.models import User
from dashboard.common import clock
from dashboard.projects.invitations import list_open_invitations
from dashboard.projects.models import Invitation, Key, Member, Project, Role
from dashboard.projects.selectors import for_project, list_live_keys

REVOKED_KEY_RETENTION = timedelta(days=30)
ROLE_DESCRIPTIONS = {
    Role.VIEWER: "read-only access to all pages",
    Role.OPERATOR: "also acts on alerts, chooses baselines, schedules maintenance",
    Role.ADMIN: "also manages keys, channels, members and settings",
}


@dataclass(frozen=True)
class MembersData:
    """Data of the page."""

    members: list[Member]
    invitations: list[Invitation]
    me: User

    @property
    def roles(self) -> list[tuple[str, str, str]]:
        """All roles with their permissions, lowest first."""
        return [(role.value, role.label, means) for role, means in ROLE_DESCRIPTIONS.items()]

    @property
    def only_admin(self) -> int | None:
        """The only admin, who can neither leave nor lose the role."""
        admins = [
            member.user_id
            for member in self.members
            if member.role == Role.ADMIN and member.user.is_active
        ]
        return admins[0] if len(admins) == 1 else None


def read_members_data(*, project: Project, me: User) -> MembersData:
    """Two queries."""
    members = for_project(Member, project).select_related("user").order_by("user__username")
    return MembersData(list(members), list(list_open_invitations(project)), me)


def list_revoked_keys(*, project: Project) -> list[Key]:
    """Recently revoked keys, newest first."""
    rows = for_project(Key, project).filter(revoked_at__gt=clock.now() - REVOKED_KEY_RETENTION)
    return list(rows.select_related("created_by").order_by("-revoked_at")[:50])


def list_active_keys(*, project: Project) -> list[Key]:
    """Keys that are not revoked, with their creators."""
    return list(
        list_live_keys(project).select_related("created_by").order_by("kind", "-created_at", "-pk")
    )
