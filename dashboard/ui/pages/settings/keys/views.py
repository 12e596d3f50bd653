"""Settings > API keys: all keys of the project, of all scopes, with their last use."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from dashboard.common import clock
from dashboard.projects.models import Role
from dashboard.projects.selectors import list_live_keys
from dashboard.projects.services import key_create, key_revoke
from dashboard.ui.http.access import ProjectRequest, project_page
from dashboard.ui.http.partials import mark_uncached
from dashboard.ui.pages.settings.members.queries import list_active_keys, list_revoked_keys
from dashboard.ui.pages.setup.snippets import key_examples

KINDS = {
    "ing": ("Ingest", "For jobs. Can only send reports."),
    "api": ("Read", "For the deploy gate, Prometheus and scripts. Read-only."),
    "dep": (
        "Deployments",
        "For CI. Can only record deployments, which the charts show.",
    ),
}
EXPIRY_CHOICES = {"": "never", "30": "in 30 days", "90": "in 90 days", "365": "in a year"}


@require_safe
@project_page()
def keys(request: ProjectRequest) -> HttpResponse:
    """All active keys, and those that were revoked recently."""
    return _render(request)


@require_POST
@project_page(Role.ADMIN, sure=True)
def key_add(request: ProjectRequest) -> HttpResponse:
    """Creates a key and shows it only once, in the response, because it is not stored."""
    kind, expires = request.POST.get("kind", ""), request.POST.get("expires", "")
    if kind not in KINDS or expires not in EXPIRY_CHOICES:
        messages.error(request, "Key not created. Choose a scope and an expiry from the lists.")
        return _render(request, status=400)
    _, text = key_create(
        project=request.project,
        kind=kind,
        name=request.POST.get("name", "").strip()[:100],
        expires_at=clock.now() + timedelta(days=int(expires)) if expires else None,
        actor=request.user,
        address=request.META.get("REMOTE_ADDR"),
    )
    response = _render(request, made=text, made_kind=kind)
    response["Cache-Control"] = "no-store"
    return response


@require_POST
@project_page(Role.ADMIN)
def key_remove(request: ProjectRequest, key_id: int) -> HttpResponse:
    """Revokes a key. It requires no password, so that a leaked key can be revoked quickly."""
    key = list_live_keys(request.project).filter(pk=key_id).first()
    if key is None:
        raise Http404("Key not found.")
    key_revoke(key=key, actor=request.user, address=request.META.get("REMOTE_ADDR"))
    messages.success(request, "Key revoked. Requests with this key are now rejected.")
    return redirect("keys", request.project.slug)


def _render(
    request: ProjectRequest, *, made: str = "", made_kind: str = "", status: int = 200
) -> HttpResponse:
    context = {
        "project": request.project,
        "live": list_active_keys(project=request.project),
        "revoked": list_revoked_keys(project=request.project),
        "scopes": {kind: label for kind, (label, _) in KINDS.items()},
        "kinds": [(kind, label, hint) for kind, (label, hint) in KINDS.items()],
        "expires": list(EXPIRY_CHOICES.items()),
        "made": made,
        "made_example": key_examples(kind=made_kind, address=settings.BASE_URL, key=made)
        if made
        else "",
        "given": request.POST if status == 400 else {},
        "now": clock.now(),
    }
    return mark_uncached(render(request, "ui/settings/keys.html", context, status=status))
