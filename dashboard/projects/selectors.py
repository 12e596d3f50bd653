"""Reads projects through the one door: nobody sees a project without being a member of it."""

from typing import Any, TypeVar

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404

from dashboard.accounts.models import User
from dashboard.projects.models import Key, Member, Project, Role

M = TypeVar("M", bound=Model)
_ROLE_ORDER = [Role.VIEWER, Role.OPERATOR, Role.ADMIN]


def role_includes(role: Role, at_least: Role) -> bool:
    """Whether a role may do what another may: viewer < operator < admin."""
    return _ROLE_ORDER.index(role) >= _ROLE_ORDER.index(at_least)


def find_member_role(user: User | AnonymousUser, project: Project) -> Role | None:
    """The person's role in the project, or None."""
    if not user.is_authenticated or not user.is_active:
        return None
    role = (
        Member.objects.filter(project=project, user_id=user.pk)
        .values_list("role", flat=True)
        .first()
    )
    return Role(role) if role else None


def get_project_or_404(
    user: User | AnonymousUser, slug: str, at_least: Role = Role.VIEWER
) -> Project:
    """The one door: 404 for whoever is not a member, 403 for a member whose role is too low."""
    project = Project.objects.filter(slug=slug).first()
    role = find_member_role(user, project) if project else None
    if project is None or role is None:
        raise Http404("There is no such project.")
    if not role_includes(role, at_least):
        raise PermissionDenied(f"This needs the role {at_least.label.lower()}.")
    return project


def list_projects(user: User | AnonymousUser) -> QuerySet[Project]:
    """The projects a person is a member of, by name."""
    if not user.is_authenticated or not user.is_active:
        return Project.objects.none()
    return Project.objects.filter(members__user_id=user.pk).order_by("name", "pk")


def may_create_projects(user: User | AnonymousUser) -> bool:
    """Staff, and whoever administers a project: somebody who was only let in by a sign-in provider
    does not fill the server."""
    if not user.is_authenticated or not user.is_active:
        return False
    return user.is_staff or Member.objects.filter(user_id=user.pk, role=Role.ADMIN).exists()


def for_project(rows: type[M] | QuerySet[M], project: Project | int) -> QuerySet[M]:
    """Only the rows of this project; the first step of every query behind the door."""
    queryset: QuerySet[Any] = rows._default_manager.all() if isinstance(rows, type) else rows
    return queryset.filter(project_id=project if isinstance(project, int) else project.pk)


def read_key_actor_name(*, key_id: int) -> str:
    """What the audit record calls a key."""
    key = Key.objects.get(pk=key_id)
    return f"key {key.name or key.lookup}"


def list_live_keys(project: Project) -> QuerySet[Key]:
    """The project's keys that are not revoked, newest first."""
    return for_project(Key, project).filter(revoked_at=None).order_by("-created_at")
