"""Reports that were set aside, for operators: what they say and why they could not be folded."""

from django.contrib import admin

from dashboard.accounts.admin_site import SITE, ReadOnlyAdmin
from dashboard.ingest.models import PoisonReport


@admin.register(PoisonReport, site=SITE)
class PoisonAdmin(ReadOnlyAdmin):
    """`manage.py refold` brings them back into the line."""

    list_display = ("id", "project", "instance_id", "seq_first", "seq_last", "set_aside_at")
    list_select_related = ("project",)
    fields = (
        "project",
        "instance_id",
        "seq_first",
        "seq_last",
        "received_at",
        "set_aside_at",
        "error",
    )
    ordering = ("-set_aside_at",)
