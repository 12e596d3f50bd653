"""Admin of quarantined reports: their text and the reason why they could not be folded."""

from django.contrib import admin

from dashboard.accounts.admin_site import SITE, ReadOnlyAdmin
from dashboard.ingest.models import PoisonReport


@admin.register(PoisonReport, site=SITE)
class PoisonAdmin(ReadOnlyAdmin):
    """`manage.py refold` returns the reports to the inbox."""

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
