"""Models of projects, members, invitations and keys."""

from django.conf import settings
from django.db import models


class Project(models.Model):
    """A team's fleet. Every other row belongs to exactly one project."""

    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    time_zone = models.CharField(max_length=64, default="UTC")
    settings = models.JSONField(
        default=dict,
        help_text="What differs from the defaults: smallest effects, budgets, retention, limits.",
    )

    class Meta:
        db_table = "project"

    def __str__(self) -> str:
        return self.name


class Role(models.TextChoices):
    """Rights of a member; each role includes the one before."""

    VIEWER = "viewer", "Viewer"
    OPERATOR = "operator", "Operator"
    ADMIN = "admin", "Admin"


class Member(models.Model):
    """A person's role in a project."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="members")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    role = models.CharField(max_length=16, choices=Role.choices)
    created_at = models.DateTimeField()
    fleet_views = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        help_text="Saved views of the Fleet page: names and queries.",
    )

    class Meta:
        db_table = "project_member"
        constraints = [
            models.UniqueConstraint(fields=["project", "user"], name="one_role_per_member")
        ]


class Invitation(models.Model):
    """A link that adds its first visitor to a project. Only a keyed hash is stored; the link is
    shown once."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=16, choices=Role.choices)
    note = models.CharField(max_length=200, default="", blank=True, help_text="For whom it is.")
    digest = models.BinaryField(max_length=32, unique=True)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True)
    accepted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "project_invitation"


class Key(models.Model):
    """API key of a machine. Only a keyed hash is stored; the text is shown once."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="keys")
    kind = models.CharField(
        max_length=8,
        choices=[("ing", "Sends reports"), ("api", "Reads"), ("dep", "Records deployments")],
    )
    name = models.CharField(max_length=100, default="")
    lookup = models.CharField(max_length=8, unique=True)
    digest = models.BinaryField(max_length=32)
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    exposed_at = models.DateTimeField(null=True, help_text="When it was seen over plain http.")
    last_used_at = models.DateTimeField(null=True, help_text="To the minute.")

    class Meta:
        db_table = "project_key"
