"""What every page needs besides its own rows."""

from typing import Any

from django.http import HttpRequest


def page_context(request: HttpRequest) -> dict[str, Any]:
    """Adds nothing to a page that has no project."""
    return {}
