"""Models of people and the audit log."""

from typing import Any

from django.contrib.auth.models import AbstractUser
from django.db import models


class User(AbstractUser):
    """A person who signs in. Rights come from memberships."""

    theme = models.CharField(
        max_length=8,
        default="system",
        choices=[("system", "As the system"), ("light", "Light"), ("dark", "Dark")],
    )


class AuditEntry(models.Model):
    """One change by a person or a command. Rows are append-only."""

    at = models.DateTimeField(db_index=True)
    project_id = models.BigIntegerField(null=True, db_index=True)
    actor = models.ForeignKey(User, null=True, on_delete=models.SET_NULL)
    actor_name = models.CharField(
        max_length=150, help_text="Kept when the person is gone; a command writes its name."
    )
    action = models.CharField(max_length=64)
    subject = models.CharField(max_length=200)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    address = models.GenericIPAddressField(null=True)

    class Meta:
        db_table = "audit_entry"
        verbose_name_plural = "audit entries"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError("an audit entry cannot be changed")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise TypeError("an audit entry cannot be deleted")
