"""URLs of the pages that messages link to."""

from urllib.parse import quote, urlencode

from django.conf import settings


def alert_url(*, project: str, number: int) -> str:
    """The page of an alert."""
    return _page(project, f"alerts/{number}/")


def alerts_url(*, project: str) -> str:
    """The list of alerts."""
    return _page(project, "alerts/")


def group_url(*, project: str, group: int) -> str:
    """The alerts of a group."""
    return _page(project, f"alerts/?group={group}")


def version_alerts_url(*, project: str, version: int) -> str:
    """The alerts of a version in all environments."""
    return _page(project, f"alerts/?version={version}")


def compare_url(*, project: str, model_id: int, baseline_id: int | None, candidate_id: int) -> str:
    """The evidence: the comparison of two versions."""
    chosen = (
        {"a": baseline_id, "b": candidate_id} if baseline_id is not None else {"b": candidate_id}
    )
    return _page(project, f"models/{model_id}/compare?{urlencode(chosen)}")


def project_url(*, project: str) -> str:
    """The first page of a project."""
    return _page(project, "")


def _page(project: str, path: str) -> str:
    return f"{settings.BASE_URL}/p/{quote(project, safe='')}/{path}"
