"""Project creation by a person: the slug is derived from the name."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.utils.text import slugify

from dashboard.accounts.models import User
from dashboard.common.unicode_safety import visible_name
from dashboard.projects.models import Project
from dashboard.projects.services import project_create

MAX_SLUG_TRIES = 50


class ProjectError(ValueError):
    """A project that cannot be created; the text gives the reason."""


def project_create_from_name(*, name: str, actor: User, address: str | None = None) -> Project:
    """Creates a project with its creator as admin. A name in use gets a number in its slug. Raises
    ProjectError."""
    name = visible_name(" ".join(name.split()))
    if not 1 <= len(name) <= 100:
        raise ProjectError("The name must have 1 to 100 characters.")
    base = slugify(name)[:56] or "project"
    taken = set(Project.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    slug = next(
        (
            one
            for one in (base, *(f"{base}-{number}" for number in range(2, MAX_SLUG_TRIES)))
            if one not in taken
        ),
        "",
    )
    if not slug:
        raise ProjectError("Too many projects have this name; choose another.")
    try:
        return project_create(name=name, slug=slug, actor=actor, address=address)
    except (IntegrityError, ValidationError) as error:
        raise ProjectError(
            "Another person created a project with this name at the same moment; try again."
        ) from error
