"""Bootstrap: the first user, project and key. A second run finds them and creates nothing."""

import secrets
from dataclasses import dataclass

from django.utils.text import slugify

from dashboard.accounts.models import User
from dashboard.accounts.services import user_create
from dashboard.projects.models import Key, Member, Project, Role
from dashboard.projects.services import key_create, member_add, project_create


@dataclass(frozen=True, slots=True)
class SetupResult:
    """Result of the bootstrap. `password` and `key` are new texts, shown once; None means that they
    existed before."""

    project: Project
    user: User | None
    password: str | None
    key: str | None


def project_setup(
    *,
    name: str,
    username: str | None = None,
    password: str | None = None,
    actor_name: str = "setup_project",
) -> SetupResult:
    """Creates the missing parts: a project, an admin if `username` is given, and an ingest key if
    none is valid."""
    user, made = _find_or_create_user(username, password, actor_name)
    slug = slugify(name)
    project = Project.objects.filter(slug=slug).first() or project_create(
        name=name, slug=slug, actor_name=actor_name
    )
    if user is not None and not Member.objects.filter(project=project, user=user).exists():
        member_add(project=project, user=user, role=Role.ADMIN, actor_name=actor_name)
    if Key.objects.filter(project=project, kind="ing", revoked_at=None).exists():
        return SetupResult(project, user, made, None)
    _, text = key_create(project=project, kind="ing", name="first key", actor_name=actor_name)
    return SetupResult(project, user, made, text)


def _find_or_create_user(
    username: str | None, password: str | None, actor_name: str
) -> tuple[User | None, str | None]:
    if username is None:
        return None, None
    found = User.objects.filter(username=username).first()
    if found is not None:
        return found, None
    text = password or secrets.token_urlsafe(12)
    first = not User.objects.exists()
    return user_create(
        username=username, password=text, is_staff=first, actor_name=actor_name
    ), text
