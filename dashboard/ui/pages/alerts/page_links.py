"""Links of the Alert page to the pages that show more, by the name that facts and steps use."""

from __future__ import annotations

from urllib.parse import urlencode

from django.urls import reverse

from dashboard.alerts.models import AlertCause
from dashboard.ui.pages.alerts.affected_ranks import AlertRanks
from dashboard.ui.pages.alerts.queries import AlertData
from dashboard.ui.pages.alerts.timeline import compare_query


def build_page_links(page: AlertData, ranks: AlertRanks | None) -> dict[str, tuple[str, str]]:
    """Text and address of each link."""
    slug, deployment = page.alert.project.slug, page.alert.deployment
    model, version = deployment.model_id, deployment.version_id
    found = {"health": ("Health", reverse("health", args=[slug]))}
    if page.alert.cause == AlertCause.FLEET_SILENCE:
        return found | {"silent": ("Silent instances", reverse("fleet", args=[slug]))}
    env = {"env": deployment.environment}
    here = f"?{urlencode(env)}"
    instances, own = reverse("instances", args=[slug, model]), {"version": version}
    compare = f"{reverse('compare', args=[slug, model])}?{compare_query(page)}"
    job = {"job": ranks.job} if ranks and ranks.job else {}
    one = f"{reverse('model_compiles', args=[slug, model])}?{urlencode(env | own)}"
    return found | {
        "model": ("Model", f"{reverse('model', args=[slug, model])}{here}"),
        "compare": ("Compare versions", compare),
        "differs": ("Differences", f"{compare}#differs"),
        "findings": (
            "Findings",
            f"{reverse('findings', args=[slug])}?{urlencode({'model': model})}",
        ),
        "compiles": ("Compilations", one),
        "parity": ("Parity", f"{one}#parity"),
        "instances": ("Instances", f"{instances}?{urlencode(env | own)}"),
        "silent": ("Silent instances", f"{instances}{here}"),
        "ranks": ("Ranks", f"{reverse('ranks', args=[slug, model])}?{urlencode(env | job)}"),
    }
