"""The model of an address, and whole numbers of a query."""

from __future__ import annotations

from django.http import Http404

from dashboard.fleet.models import WatchedModel
from dashboard.fleet.selectors.versions.versions import find_model
from dashboard.ui.http.access import ProjectRequest


def model_or_404(request: ProjectRequest, model_id: int) -> WatchedModel:
    """The model of this project."""
    found = find_model(project_id=request.project.pk, model_id=model_id)
    if found is None:
        raise Http404("Model not found in this project.")
    return found


def parse_whole_number(text: str | None) -> int | None:
    """A number from the URL, or None if it is invalid."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 16 else None
