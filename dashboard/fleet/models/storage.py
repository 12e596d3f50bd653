"""Storage measures: database bytes per day of an instance and of a version."""

from django.db import models


class StorageMeasure(models.Model):
    """Latest measurement for an instance or a version.

    A job measures, because a measurement reads whole tables; pages show the stored result.
    """

    of = models.CharField(
        primary_key=True, max_length=16, choices=[("instance", "instance"), ("version", "version")]
    )
    bytes_a_day = models.FloatField(null=True, help_text="NULL: nothing was seen yet.")
    measured_at = models.DateTimeField()
    took = models.FloatField(help_text="Seconds.")

    class Meta:
        db_table = "storage_measure"
