"""What a day of something takes in the database, as it was last measured."""

from django.db import models


class StorageMeasure(models.Model):
    """Of an instance, or of a version. Measuring reads whole tables, so pages show what a job
    found."""

    of = models.CharField(
        primary_key=True, max_length=16, choices=[("instance", "instance"), ("version", "version")]
    )
    bytes_a_day = models.FloatField(null=True, help_text="NULL: nothing was seen yet.")
    measured_at = models.DateTimeField()
    took = models.FloatField(help_text="Seconds.")

    class Meta:
        db_table = "storage_measure"
