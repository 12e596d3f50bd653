"""Rows of the Alert quality page: false verdicts per deployment and false discoveries, with their
intervals. The page, the JSON and the CSV show the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.alerts.alert_quality import Proportion
from dashboard.alerts.deployment_quality import DeploymentQuality, SeverityCounts
from dashboard.ui.pages.alerts.quality import format_interval, format_share
from dashboard.vocabulary import numbers
from dashboard.vocabulary.severity import ROLL_BACK

MODELS_SHOWN = 30
"""Models on the page; the files contain all of them."""
ALL_MODELS = "All models"


@dataclass(frozen=True)
class DeploymentQualityRow:
    """One severity of one model or of the project. Shares are per deployment; None without a
    deployment. `kind` is the least severity that counts."""

    model: str
    model_id: int | None
    simulated: bool
    kind: str
    verdict: str
    deployments: int
    verdicts: int
    accepted: int
    disputed: int
    unlabelled: int
    false_share: float | None
    false_low: float | None
    false_high: float | None
    most_false_share: float | None
    set_rate: float
    above_set_rate: bool
    false_discovery: float | None
    false_discovery_low: float | None
    false_discovery_high: float | None
    false_text: str
    false_interval: str
    most_false_text: str
    set_rate_text: str
    false_discovery_text: str
    false_discovery_interval: str


def build_deployment_rows(found: Sequence[DeploymentQuality]) -> list[DeploymentQualityRow]:
    """Two rows for the project and for each model."""
    return [_row(one, counts) for one in found for counts in one.severities]


def _row(one: DeploymentQuality, counts: SeverityCounts) -> DeploymentQualityRow:
    false, most, discovery = counts.false_share, counts.most_false, counts.false_discovery
    low, high = false.interval or (None, None)
    discovery_low, discovery_high = discovery.interval or (None, None)
    return DeploymentQualityRow(
        model=one.name or ALL_MODELS,
        model_id=one.model_id,
        simulated=one.simulated,
        kind=counts.kind,
        verdict="ROLL BACK" if counts.kind == ROLL_BACK else "WATCH or ROLL BACK",
        deployments=counts.deployments,
        verdicts=counts.verdicts,
        accepted=counts.accepted,
        disputed=counts.disputed,
        unlabelled=counts.unlabelled,
        false_share=false.value,
        false_low=low,
        false_high=high,
        most_false_share=most.value,
        set_rate=counts.nominal,
        above_set_rate=low is not None and low > counts.nominal,
        false_discovery=discovery.value,
        false_discovery_low=discovery_low,
        false_discovery_high=discovery_high,
        false_text=_one_in(false),
        false_interval=_one_in_interval(false),
        most_false_text=_one_in(most) if counts.unlabelled else "",
        set_rate_text=numbers.one_in(counts.nominal),
        false_discovery_text=format_share(discovery),
        false_discovery_interval=format_interval(discovery),
    )


def _one_in(share: Proportion) -> str:
    """Counts, and the rate as 1 in N; a count of zero alone states no rate."""
    if share.value is None:
        return "–"
    counts = f"{share.part} of {share.whole}"
    return f"{counts}, {numbers.one_in(share.value)}" if share.part else counts


def _one_in_interval(share: Proportion) -> str:
    if share.interval is None:
        return ""
    low, high = share.interval
    if not share.part:
        return f"95% CI at most {numbers.one_in(high)}"
    return f"95% CI {numbers.one_in(low)} to {numbers.one_in(high)}"
