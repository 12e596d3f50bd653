"""Selectors of projects, with the access check: only members see a project."""

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
    """True if `role` includes the rights of `at_least`: viewer < operator < admin."""
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
    """The access check: Http404 for a person who is not a member, PermissionDenied for a lower
    role."""
    project = Project.objects.filter(slug=slug).first()
    role = find_member_role(user, project) if project else None
    if project is None or role is None:
        raise Http404("Project not found.")
    if not role_includes(role, at_least):
        raise PermissionDenied(f"This requires the role {at_least.label.lower()}.")
    return project


def list_projects(user: User | AnonymousUser) -> QuerySet[Project]:
    """Projects in which the person is a member, by name."""
    if not user.is_authenticated or not user.is_active:
        return Project.objects.none()
    return Project.objects.filter(members__user_id=user.pk).order_by("name", "pk")


def may_create_projects(user: User | AnonymousUser) -> bool:
    """True for staff and for admins of a project. A person whom only the sign-in provider admitted
    cannot create projects."""
    if not user.is_authenticated or not user.is_active:
        return False
    return user.is_staff or Member.objects.filter(user_id=user.pk, role=Role.ADMIN).exists()


def for_project(rows: type[M] | QuerySet[M], project: Project | int) -> QuerySet[M]:
    """Only the rows of this project; the first filter of every query after the access check."""
    queryset: QuerySet[Any] = rows._default_manager.all() if isinstance(rows, type) else rows
    return queryset.filter(project_id=project if isinstance(project, int) else project.pk)


def read_key_actor_name(*, key_id: int) -> str:
    """The name of a key in the audit log."""
    key = Key.objects.get(pk=key_id)
    return f"key {key.name or key.lookup}"


def list_live_keys(project: Project) -> QuerySet[Key]:
    """The project's keys that are not revoked, newest first."""
    return for_project(Key, project).filter(revoked_at=None).order_by("-created_at")
