"""Access to a project requires a membership, and each role permits only its own actions."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404

from dashboard.accounts.models import User
from dashboard.projects.models import Key, Member, Project, Role
from dashboard.projects.selectors import (
    find_member_role,
    for_project,
    get_project_or_404,
    list_projects,
    role_includes,
)
from dashboard.projects.services import key_create, member_add

pytestmark = pytest.mark.django_db
MakeUser = Callable[..., User]


def test_a_member_can_open_the_project(project: Project, make_user: MakeUser) -> None:
    for number, role in enumerate(Role):
        member = make_user(f"member{number}", project, role)
        assert get_project_or_404(member, project.slug) == project
        assert find_member_role(member, project) == role


def test_strangers_visitors_and_missing_projects_get_the_same_404(
    project: Project, other_project: Project, make_user: MakeUser
) -> None:
    stranger = make_user("eve", other_project, Role.ADMIN)
    for who, slug in (
        (stranger, project.slug),
        (stranger, "no-such-project"),
        (AnonymousUser(), project.slug),
    ):
        with pytest.raises(Http404, match="Project not found"):
            get_project_or_404(who, slug)


def test_an_account_that_may_not_sign_in_is_treated_as_a_stranger(
    project: Project, user: User
) -> None:
    user.is_active = False
    with pytest.raises(Http404):
        get_project_or_404(user, project.slug)
    assert not list_projects(user).exists()


def test_a_superuser_without_a_membership_is_treated_as_a_stranger(
    project: Project, make_user: MakeUser
) -> None:
    root = make_user("root")
    root.is_superuser = root.is_staff = True
    root.save()
    with pytest.raises(Http404):
        get_project_or_404(root, project.slug)


def test_each_role_includes_the_previous_one(project: Project, make_user: MakeUser) -> None:
    roles = [Role.VIEWER, Role.OPERATOR, Role.ADMIN]
    assert [[role_includes(role, wanted) for wanted in roles] for role in roles] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
    operator = make_user("oscar", project, Role.OPERATOR)
    assert get_project_or_404(operator, project.slug, at_least=Role.OPERATOR) == project
    with pytest.raises(PermissionDenied, match="admin"):
        get_project_or_404(operator, project.slug, at_least=Role.ADMIN)


def test_for_project_excludes_rows_of_other_projects(
    project: Project, other_project: Project
) -> None:
    mine, _ = key_create(project=project)
    key_create(project=other_project)
    assert list(for_project(Key, project)) == [mine]
    assert list(for_project(Key.objects.filter(kind="ing"), project.pk)) == [mine]
    assert not for_project(Key.objects.filter(kind="api"), project).exists()


def test_a_second_role_replaces_the_first(project: Project, user: User) -> None:
    member_add(project=project, user=user, role=Role.VIEWER, actor=user)
    assert Member.objects.get(project=project, user=user).role == Role.VIEWER
    assert list(list_projects(user)) == [project]
