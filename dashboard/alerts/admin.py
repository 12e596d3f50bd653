"""Deliveries and their results, for operators; addresses and secrets of channels are hidden."""

from django.contrib import admin

from dashboard.accounts.admin_site import SITE, ReadOnlyAdmin
from dashboard.alerts.models import Delivery


@admin.register(Delivery, site=SITE)
class DeliveryAdmin(ReadOnlyAdmin):
    """Newest first."""

    list_display = (
        "id",
        "project",
        "kind",
        "state",
        "attempts",
        "next_attempt_at",
        "last_status",
        "created_at",
    )
    list_filter = ("state", "kind")
    list_select_related = ("project",)
    fields = (
        "project",
        "kind",
        "message_id",
        "state",
        "attempts",
        "next_attempt_at",
        "last_status",
        "last_answer",
        "created_at",
        "delivered_at",
    )
    ordering = ("-created_at",)
