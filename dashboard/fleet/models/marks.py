"""Deployment marks: deployments reported by CI, in addition to those seen in traffic."""

from django.db import models

from dashboard.projects.models import Project


class DeploymentMark(models.Model):
    """Deployment reported by CI.

    Its model and version may never send reports; verdicts depend on traffic alone.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    model_name = models.CharField(max_length=200)
    environment = models.CharField(max_length=64)
    version_name = models.CharField(max_length=200)
    at = models.DateTimeField()
    by = models.CharField(max_length=150, default="")
    link = models.CharField(max_length=500, default="")
    note = models.TextField(default="")
    created_at = models.DateTimeField()

    class Meta:
        db_table = "deployment_mark"
        constraints = [
            models.UniqueConstraint(
                fields=["project", "model_name", "environment", "version_name", "at"],
                name="one_mark_per_deployment",
            )
        ]
        indexes = [
            models.Index(
                fields=["project", "model_name", "environment", "at"], name="mark_by_time"
            ),
            models.Index(fields=["project", "created_at"], name="mark_by_arrival"),
        ]
