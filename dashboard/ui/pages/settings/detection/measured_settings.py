"""Card of the Detection page: error rates and detectable change of settings, as measured on placebo
pairs of the fleet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from dashboard.projects.retention import read_retention
from dashboard.regressions.judge.placebo import (
    DETECTION_SHARE,
    LEAST_UNITS,
    SIZES,
    PlaceboTally,
    binomial_interval,
)
from dashboard.regressions.judge.settings import Settings
from dashboard.regressions.judge.settings_overrides import (
    Value,
    build_settings,
    list_settings,
    merge_layers,
)
from dashboard.regressions.models import PlaceboPreview
from dashboard.regressions.placebo_periods import (
    LEAST_PERIOD_MINUTES,
    PERIOD_MINUTES,
    PlaceboPlan,
)
from dashboard.ui.pages.settings.detection.presenter import format_unit
from dashboard.ui.pages.settings.detection.queries import DetectionData
from dashboard.vocabulary import numbers

LEAST_PAIRS = 10
"""Placebo pairs from which rates are shown. With 10 pairs and no alert the rate is below 1 in 4."""
SHOWN_SIZES = (0.05, 0.10, 0.20, 0.30, 0.50)

State = Literal["none", "computing", "failed", "too_few", "done"]


@dataclass(frozen=True)
class RateRow:
    """A measured rate of false alerts, next to the rate that is set."""

    kind: str
    label: str
    count: str
    rate: str
    interval: str
    nominal: str
    above: bool
    """True if the whole interval is above the rate that is set."""


@dataclass(frozen=True)
class MeasuredCard:
    """All data of the card. `differing` lists the values that differ from the saved ones."""

    state: State
    at: datetime | None = None
    by: str = ""
    progress: str = ""
    headline: str = ""
    rates: list[RateRow] = field(default_factory=list)
    detected: list[tuple[str, str]] = field(default_factory=list)
    basis: str = ""
    undecided: str = ""
    differing: list[str] = field(default_factory=list)
    needed: str = ""
    left_out: list[str] = field(default_factory=list)


def build_measured_card(facts: DetectionData) -> MeasuredCard:
    """The card of the newest preview of the project or of the model."""
    preview = facts.preview
    if preview is None:
        return MeasuredCard("none", needed=_needed(facts))
    tally = PlaceboTally(**preview.tally)
    plan = PlaceboPlan.of(preview.plan) if preview.plan is not None else None
    card = MeasuredCard(
        "failed",
        at=preview.finished_at or preview.requested_at,
        by=preview.requested_by_name,
        differing=list_differing(preview.values, facts),
    )
    if preview.finished_at is None:
        return replace(card, state="computing", progress=_progress(preview, plan, tally))
    if plan is None:
        return card
    left_out = [
        f"{numbers.plural(count, 'version')}: {reason}"
        for reason, count in sorted(plan.left_out.items())
    ]
    if tally.pairs < LEAST_PAIRS:
        found = numbers.plural(tally.pairs, "placebo pair")
        needed = f"{LEAST_PAIRS} placebo pairs are needed; {found} found. {_needed(facts)}"
        return replace(card, state="too_few", needed=needed, left_out=left_out)
    settings = build_settings(merge_layers(facts.of_project, preview.values), facts.learned)
    return replace(
        card,
        state="done",
        headline=_headline(tally),
        rates=_build_rates(tally, settings),
        detected=[(f"+{numbers.percent(size)}", _detected(tally, size)) for size in SHOWN_SIZES],
        basis=_basis(preview, plan, tally),
        undecided=f"{tally.undecided} of {tally.pairs}" if tally.undecided else "",
        left_out=left_out,
    )


def _headline(tally: PlaceboTally) -> str:
    share = numbers.percent(DETECTION_SHARE)
    hours = numbers.format_minutes(PERIOD_MINUTES)
    detectable = tally.detectable
    if detectable is None:
        seen = f"no change up to {numbers.percent(SIZES[-1])} in call time is detected"
    else:
        seen = f"a change of {numbers.percent(detectable)} in call time is detected"
    wrong = _rate(tally.roll_backs, tally.pairs)
    return (
        f"With these settings, {seen} in {share} of cases within {hours}, and {wrong} healthy "
        "deployments gets a false ROLL BACK."
    )


def _rate(count: int, whole: int) -> str:
    if not count:
        return f"at most {numbers.one_in(binomial_interval(0, whole)[1])}"
    return f"about {numbers.one_in(count / whole)}"


def _build_rates(tally: PlaceboTally, settings: Settings) -> list[RateRow]:
    rows = [
        ("roll_back", "ROLL BACK", tally.roll_backs, settings.roll_back_alpha),
        ("watch", "WATCH or ROLL BACK", tally.alerts, settings.watch_alpha),
    ]
    found = []
    for kind, label, count, nominal in rows:
        low, high = binomial_interval(count, tally.pairs)
        interval = f"95% CI {numbers.one_in(low)} to {numbers.one_in(high)}" if count else ""
        found.append(
            RateRow(
                kind=kind,
                label=label,
                count=f"{count} of {tally.pairs}",
                rate=_rate(count, tally.pairs).removeprefix("about "),
                interval=interval,
                nominal=numbers.one_in(nominal),
                above=low > nominal,
            )
        )
    return found


def _detected(tally: PlaceboTally, size: float) -> str:
    count, whole = tally.count_detected(size), len(tally.sizes)
    return f"{count} of {whole} ({numbers.percent(round(count / whole, 2))})" if whole else ""


def _basis(preview: PlaceboPreview, plan: PlaceboPlan, tally: PlaceboTally) -> str:
    judged = PlaceboPlan(plan.periods[: preview.done], {})
    sides = sorted(len(period.units) // 2 for period in judged.periods)
    least, most = sides[0], sides[-1]
    instances = (
        numbers.plural(least, "instance") if least == most else f"{least} to {most} instances"
    )
    return (
        f"{numbers.plural(tally.pairs, 'placebo pair')} from "
        f"{numbers.plural(len(judged.periods), 'period')} of "
        f"{numbers.plural(judged.versions, 'healthy version')}, "
        f"{instances} on each side, up to {numbers.format_minutes(PERIOD_MINUTES)} per pair."
    )


def _progress(preview: PlaceboPreview, plan: PlaceboPlan | None, tally: PlaceboTally) -> str:
    if plan is None:
        return "Waiting for a worker."
    return (
        f"{preview.done} of {numbers.plural(len(plan.periods), 'period')} evaluated, "
        f"{numbers.plural(tally.pairs, 'placebo pair')} so far."
    )


def _needed(facts: DetectionData) -> str:
    days = read_retention(facts.project.settings).instance_minutes
    return (
        "A usable version has no WATCH or ROLL BACK verdict and at least "
        f"{LEAST_UNITS} instances that ran together for "
        f"{numbers.format_minutes(LEAST_PERIOD_MINUTES)} in the last "
        f"{numbers.plural(days, 'day')}."
    )


def list_differing(values: Mapping[str, Value], facts: DetectionData) -> list[str]:
    """The values that differ from the saved ones, as text."""
    found = []
    for name, setting in list_settings().items():
        below = facts.of_project.get(name, setting.default)
        value = values.get(name, below)
        if value != facts.own.get(name, below):
            found.append(f"{setting.title}: {setting.said(value)}{format_unit(setting)}")
    return found
