"""Services that write projects, members and keys. Every change is audited."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.db.models import Q
from django.utils.text import slugify

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.common import clock
from dashboard.common.unicode_safety import visible_name
from dashboard.common.write_lock import write_transaction
from dashboard.projects.cardinality_limits import CardinalityLimits, check_limits, read_limits
from dashboard.projects.key_format import key_digest, key_text_generate
from dashboard.projects.models import Key, Member, Project, Role
from dashboard.projects.rate_limit import check_quota, read_quota
from dashboard.projects.retention import Retention, check_retention, read_retention

EXPOSURE_AUDIT_INTERVAL = timedelta(minutes=1)
MAX_SLUG_TRIES = 50


class ProjectError(ValueError):
    """A project that cannot be created; the text gives the reason."""


def project_create(
    *,
    name: str,
    slug: str,
    actor: User | None = None,
    actor_name: str = "",
    address: str | None = None,
) -> Project:
    """Creates a project; its creator becomes an admin."""
    project = Project(name=name, slug=slug, created_at=clock.now())
    project.full_clean(exclude=["settings"])
    with write_transaction():
        project.save()
        _audit(
            project,
            "project.create",
            slug,
            actor,
            actor_name,
            after={"name": name},
            address=address,
        )
        if actor is not None:
            member_add(project=project, user=actor, role=Role.ADMIN, actor=actor, address=address)
    return project


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


def retention_set(
    *,
    project: Project,
    changes: Mapping[str, int],
    actor: User | None = None,
    actor_name: str = "",
    address: str | None = None,
) -> Retention:
    """Changes the retention of a project. Raises RetentionError."""
    with write_transaction():
        stored = Project.objects.select_for_update().get(pk=project.pk)
        before = read_retention(stored.settings)
        after = check_retention(before, changes)
        different = {
            name: days
            for name, days in after.as_dict().items()
            if days != Retention().as_dict()[name]
        }
        stored.settings = {**stored.settings, "retention": different}
        stored.save(update_fields=["settings"])
        _audit(
            project,
            "retention.set",
            project.slug,
            actor,
            actor_name,
            before.as_dict(),
            after.as_dict(),
            address,
        )
    project.settings = stored.settings
    return after


def limits_set(
    *,
    project: Project,
    changes: Mapping[str, int],
    actor: User | None = None,
    actor_name: str = "",
    address: str | None = None,
) -> CardinalityLimits:
    """Changes the cardinality limits of a project. Raises LimitError."""
    with write_transaction():
        stored = Project.objects.select_for_update().get(pk=project.pk)
        before = read_limits(stored.settings)
        after = check_limits(before, changes)
        different = {
            name: number
            for name, number in after.as_dict().items()
            if number != CardinalityLimits().as_dict()[name]
        }
        stored.settings = {**stored.settings, "limits": different}
        stored.save(update_fields=["settings"])
        _audit(
            project,
            "limits.set",
            project.slug,
            actor,
            actor_name,
            before.as_dict(),
            after.as_dict(),
            address,
        )
    project.settings = stored.settings
    return after


def quota_set(
    *,
    project: Project,
    changes: Mapping[str, int],
    actor: User | None = None,
    actor_name: str = "",
    address: str | None = None,
) -> dict[str, float]:
    """Changes the quota of a project. Raises QuotaError."""
    wanted = check_quota(changes)
    with write_transaction():
        stored = Project.objects.select_for_update().get(pk=project.pk)
        before = {
            name: number for name, number in read_quota(stored.settings).items() if name in wanted
        }
        stored.settings = {**stored.settings, **wanted}
        stored.save(update_fields=["settings"])
        _audit(project, "rate.set", project.slug, actor, actor_name, before, wanted, address)
    project.settings = stored.settings
    return read_quota(stored.settings)


def member_add(
    *,
    project: Project,
    user: User,
    role: Role,
    actor: User | None = None,
    actor_name: str = "",
    address: str | None = None,
) -> Member:
    """Sets a person's role in the project."""
    with write_transaction():
        before = (
            Member.objects.filter(project=project, user=user).values_list("role", flat=True).first()
        )
        member, _ = Member.objects.update_or_create(
            project=project,
            user=user,
            defaults={"role": role},
            create_defaults={"role": role, "created_at": clock.now()},
        )
        _audit(
            project,
            "member.set",
            user.get_username(),
            actor,
            actor_name,
            before and {"role": before},
            {"role": str(role)},
            address,
        )
    return member


def key_create(
    *,
    project: Project,
    kind: str = "ing",
    name: str = "",
    expires_at: datetime | None = None,
    actor: User | None = None,
    actor_name: str = "",
    address: str | None = None,
) -> tuple[Key, str]:
    """Creates a key. Returns the key and its text, which is not stored and cannot be shown
    again."""
    made = key_text_generate(kind)
    key = Key(
        project=project,
        kind=kind,
        name=name,
        lookup=made.lookup,
        created_at=clock.now(),
        created_by=actor,
        expires_at=expires_at,
    )
    key.digest = key_digest(made.text, settings.KEY_PEPPER)
    with write_transaction():
        key.save()
        _audit(
            project,
            "key.create",
            key_label(key),
            actor,
            actor_name,
            after={"kind": kind, "name": name},
            address=address,
        )
    return key, made.text


def key_revoke(
    *, key: Key, actor: User | None = None, actor_name: str = "", address: str | None = None
) -> None:
    """Revokes a key, which stops working within a second in every process."""
    with write_transaction():
        if Key.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=clock.now()):
            _audit(key.project, "key.revoke", key_label(key), actor, actor_name, address=address)


def key_record_use(*, key_id: int) -> None:
    """Records the minute of use; a second call in the same minute writes nothing."""
    minute = clock.now().replace(second=0, microsecond=0)
    unnoted = Key.objects.filter(Q(last_used_at=None) | Q(last_used_at__lt=minute), pk=key_id)
    if unnoted.exists():
        with write_transaction():
            unnoted.update(last_used_at=minute)


def key_record_exposure(*, key_id: int, where: str, address: str | None) -> None:
    """Marks a key that was sent where others can read it, with at most one audit entry per minute
    and key."""
    now = clock.now()
    unnoted = Key.objects.filter(
        Q(exposed_at=None) | Q(exposed_at__lt=now - EXPOSURE_AUDIT_INTERVAL), pk=key_id
    )
    with write_transaction():
        if unnoted.update(exposed_at=now):
            key = Key.objects.select_related("project").get(pk=key_id)
            audit_write(
                action="key.exposed",
                subject=key_label(key),
                project_id=key.project_id,
                actor_name="ingest",
                after={"where": where},
                address=address,
            )


def key_label(key: Key) -> str:
    """The public part of a key."""
    return f"cw_{key.kind}_{key.lookup}"


def _audit(
    project: Project,
    action: str,
    subject: str,
    actor: User | None,
    actor_name: str,
    before: object = None,
    after: object = None,
    address: str | None = None,
) -> None:
    audit_write(
        action=action,
        subject=subject,
        project_id=project.pk,
        actor=actor,
        actor_name=actor_name or ("" if actor else "command"),
        before=before,
        after=after,
        address=address,
    )
