"""Verdicts of a model in one environment: the evaluated version, its baseline, all deployments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Case, F, Q, When

from dashboard.alerts.current_verdict import annotate_open_alert, apply_open_alerts
from dashboard.fleet.models import Deployment, ModelVersion, WatchedModel
from dashboard.fleet.selectors.versions.versions import MAX_DEPLOYMENTS, list_model_deployments
from dashboard.regressions.models import Verdict
from dashboard.ui.charts.version_styles import VersionStyle, assign_version_styles
from dashboard.vocabulary.severity import rank_severity

MAX_VERSIONS_LISTED = 12


@dataclass
class ModelVerdicts:
    """The evaluated pair in one environment, and its verdicts."""

    environment: str
    environments: list[str]
    deployments: list[Deployment]
    verdicts: dict[int, Verdict]
    judged: Deployment | None
    baseline: ModelVersion | None
    all_deployments: bool = True
    """False if there are more deployments than the limit, so that the first deployment of a version
    may be missing."""

    @property
    def verdict(self) -> Verdict | None:
        """The current verdict of the evaluated deployment."""
        return self.verdicts.get(self.judged.pk) if self.judged else None

    @property
    def latest(self) -> dict[int, Deployment]:
        """The newest deployment of each version, newest first."""
        found: dict[int, Deployment] = {}
        for deployment in self.deployments:
            found.setdefault(deployment.version_id, deployment)
        return found

    @property
    def pair(self) -> tuple[int | None, int | None]:
        """Evaluated version and baseline, as version IDs."""
        return (
            self.judged.version_id if self.judged else None,
            self.baseline.pk if self.baseline else None,
        )

    @property
    def listed(self) -> list[int]:
        """The evaluated version, its baseline, then the newest others, up to the size of a page."""
        return list(
            dict.fromkeys(
                id
                for id in (*self.pair, *list(self.latest)[:MAX_VERSIONS_LISTED])
                if id is not None
            )
        )

    def drawn(self, wanted: Sequence[int]) -> list[VersionStyle]:
        """Style of each of these versions; a chart shows up to six."""
        names = {id: deployment.version.name for id, deployment in self.latest.items()}
        if self.baseline:
            names.setdefault(self.baseline.pk, self.baseline.name)
        judged, baseline = self.pair
        return assign_version_styles(
            judged=judged,
            baseline=baseline,
            newest_first=[(id, names[id]) for id in wanted if id in names],
        )


def read_model_verdicts(
    *,
    model: WatchedModel,
    environment: str = "",
    version_id: int | None = None,
    baseline_id: int | None = None,
    always: Sequence[int] = (),
) -> ModelVerdicts:
    """Deployments and verdicts. The evaluated deployment is the one from the URL, else the most
    urgent, else the newest live deployment."""
    named = [id for id in (version_id, baseline_id) if id is not None]
    always = tuple(dict.fromkeys((*always, *named)))
    everywhere = list_model_deployments(
        project_id=model.project_id, model_id=model.pk, always=always
    )
    verdicts = _verdicts(model, always)
    environments = sorted({deployment.environment for deployment in everywhere})
    ranked = sorted(everywhere, key=lambda deployment: _urgency(deployment, verdicts), reverse=True)
    if environment not in environments:
        asked = [row for row in ranked if row.version_id == version_id] or ranked
        environment = asked[0].environment if asked else ""
    here = [deployment for deployment in everywhere if deployment.environment == environment]
    judged = next((row for row in here if row.version_id == version_id), None) or next(
        (row for row in ranked if row.environment == environment), None
    )
    baseline = _chosen_baseline(here, judged, baseline_id) or _baseline(here, judged, verdicts)
    return ModelVerdicts(
        environment,
        environments,
        here,
        verdicts,
        judged,
        baseline,
        all_deployments=len(everywhere) < MAX_DEPLOYMENTS,
    )


def _verdicts(model: WatchedModel, always: Sequence[int]) -> dict[int, Verdict]:
    """Current verdicts of the deployments. Evidence is large and only one is shown, so it is read
    only for candidates."""
    shown = Q(deployment__ended_minute=None) | Q(deployment__version_id__in=always)
    rows = Verdict.objects.filter(
        project_id=model.project_id, deployment__model=model, current=True
    ).defer("evidence")
    rows = rows.select_related("deployment", "baseline__version").annotate(
        shown_evidence=Case(When(shown, then=F("evidence")))
    )
    found = list(annotate_open_alert(rows))
    for row in found:
        evidence = getattr(row, "shown_evidence", None)
        if evidence is not None:
            row.evidence = evidence
    return {row.deployment_id: row for row in apply_open_alerts(found)}


def _urgency(
    deployment: Deployment, verdicts: Mapping[int, Verdict]
) -> tuple[bool, bool, int, int]:
    live = deployment.ended_minute is None
    verdict = verdicts.get(deployment.pk)
    return (
        not deployment.version.is_other,
        live,
        rank_severity(verdict.kind) if verdict and live else 0,
        deployment.started_minute,
    )


def _chosen_baseline(
    here: list[Deployment], judged: Deployment | None, baseline_id: int | None
) -> ModelVersion | None:
    """The baseline from the URL, if it is another version of this environment."""
    if judged is None or baseline_id == judged.version_id:
        return None
    return next((row.version for row in here if row.version_id == baseline_id), None)


def _baseline(
    here: list[Deployment], judged: Deployment | None, verdicts: Mapping[int, Verdict]
) -> ModelVersion | None:
    """The baseline of the verdict, or without a verdict the previously deployed version."""
    if judged is None:
        return None
    verdict = verdicts.get(judged.pk)
    if verdict is not None and verdict.baseline is not None:
        return verdict.baseline.version
    others = [
        row for row in here if row.version_id != judged.version_id and not row.version.is_other
    ]
    before = [row for row in others if row.started_minute <= judged.started_minute]
    return before[0].version if before else None
