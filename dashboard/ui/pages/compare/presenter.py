"""Compare page: the evidence of a verdict, or only observed values if there is no verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dashboard.fleet.fold.sketch_columns import merge_packed_by_key
from dashboard.fleet.metrics.aggregate import (
    CallTotals,
    Clock,
    ProcessTotals,
    all_report_stalls,
    choose_clock,
    sum_calls,
)
from dashboard.fleet.metrics.eager_causes import EagerBreakdown
from dashboard.fleet.models import ModelVersion
from dashboard.regressions.evidence_reader import (
    read_coverage,
    read_environment,
    read_excluded_calls,
    read_mix_shifts,
    read_runs,
    read_warm_up,
)
from dashboard.ui.charts.cohort_labels import format_cohort
from dashboard.ui.charts.evidence_table import (
    MUTED,
    EvidenceRow,
    build_evidence_rows,
)
from dashboard.ui.charts.fact_lines import FactLine, fact_lines
from dashboard.ui.charts.latency_histograms import Panel, build_panels, merge_cells, panels_json
from dashboard.ui.charts.strip_plot import (
    StripPlot,
    StripPoint,
    build_strip_plot,
    points_from_evidence,
)
from dashboard.ui.charts.unjudged_rows import (
    add_stalled_calls,
    build_observed_rows,
    cold_start_row,
    fill_observed_levels,
)
from dashboard.ui.pages.compare.configuration_diff import (
    ConfigurationDiff,
    compare_configurations,
    format_values,
)
from dashboard.ui.pages.compare.queries import CompareData
from dashboard.ui.pages.findings.columns import FindingsColumn, findings_columns
from dashboard.ui.pages.instances.trait_differences import TraitDifferences, compare_traits
from dashboard.vocabulary import numbers
from dashboard.vocabulary.metrics import METRICS, find_metric
from dashboard.vocabulary.reasons import describe_not_compared

ALSO_SHOWN = 3
SMALLEST_MIX_SHIFT = 0.001
COMPARISON_METHODS = {
    "side_by_side": "same minutes, cohort and shapes",
    "day_before": "same hosts 24 h earlier, same shapes",
    "day_before_by_weekday": "same hosts 24 h earlier, adjusted for the weekday, same shapes",
    "last_day": "the baseline's last day",
    "past_by_load": "same hosts earlier, adjusted for load, same shapes",
    "pool_day_before": "all hosts of the baseline together 24 h earlier, same shapes",
    "pool_day_before_by_weekday": "all hosts of the baseline together 24 h earlier, adjusted for "
    "the weekday, same shapes",
    "pool_by_load": "all hosts of the baseline together earlier, adjusted for load, same shapes",
    "run_against_run": "runs of earlier versions, same cohort and shapes",
    "less_neighbours": "adjusted for other models on the same nodes",
}


@dataclass(frozen=True)
class ExcludedPart:
    """Calls or metrics without a comparison, and the reason."""

    what: str
    why: str


@dataclass
class ComparePage:
    """All data of the template."""

    facts: CompareData
    clock: Clock
    gpu_known: bool
    rows: list[EvidenceRow]
    certain: list[FactLine]
    strip: StripPlot
    strip_note: str
    panels: list[Panel]
    panels_left_out: list[str]
    columns: list[FindingsColumn]
    configured: ConfigurationDiff
    differs: TraitDifferences
    not_compared: list[ExcludedPart]
    how: str
    """Comparison method of the evaluated rows."""
    notes: list[str]
    about: list[str]
    why_eager: list[tuple[int, ModelVersion, EagerBreakdown]]
    """Slot, version and breakdown of both sides; empty if every call with a known mode ran
    compiled."""

    def drawn(self) -> dict[str, Any]:
        """The data that the browser draws."""
        a, b = self.facts.pair
        return {
            "names": {"baseline": a.name, "candidate": b.name},
            "intervals": [
                {
                    "title": row.title,
                    "detail": row.detail,
                    "note": row.note,
                    "tone": row.tone,
                    "interval": asdict(row.interval) if row.interval else None,
                }
                for row in self.rows
            ],
            "strip": self.strip.as_json(),
            "panels": panels_json(self.panels),
        }

    @property
    def conclusion(self) -> str:
        """Text alternative of the interval plot."""
        judged = [
            f"{row.title} {row.change} ({row.spread}), {row.label}"
            for row in self.rows
            if row.judged
        ]
        return "Changes with their intervals; right is worse. " + (
            "; ".join(judged) + "." if judged else "No metric is evaluated."
        )


def compare_page(facts: CompareData, *, clock_asked: str = "") -> ComparePage:
    """Builds the page."""
    a, b = facts.pair
    evidence = facts.verdict.evidence if facts.verdict else None
    chosen: Clock = (
        "wall"
        if clock_asked == "wall"
        else "gpu"
        if clock_asked == "gpu"
        else choose_clock(facts.calls)
    )
    rows = build_evidence_rows(evidence, verdict=facts.verdict.kind if facts.verdict else "")
    said = {row.trend for row in rows}
    sides = [_side(facts, version.pk, chosen) for version in (a, b)]
    rows = fill_observed_levels(rows, sides[0], sides[1]) if chosen == "wall" else rows
    rows += build_observed_rows(sides[0], sides[1], clock=chosen, judged=said)
    rows = add_stalled_calls(rows, sides[0][0], sides[1][0])
    rows += cold_start_row(facts.instances, a.pk, b.pk) if "cold_start" not in said else []
    panels, left_out = build_panels(merge_cells(facts.calls, chosen), _strata(facts), a.pk, b.pk)
    strip, note = _strip(facts, evidence, chosen)
    return ComparePage(
        facts=facts,
        clock=chosen,
        gpu_known=any(row.gpu_count for row in facts.calls),
        rows=rows,
        certain=fact_lines(evidence, sentence=facts.verdict.sentence) if facts.verdict else [],
        strip=strip,
        strip_note=note,
        panels=panels,
        panels_left_out=left_out,
        columns=findings_columns(facts.findings, judged=(b.pk, b.name), baseline=(a.pk, a.name)),
        configured=compare_configurations(facts.configurations, a.pk, b.pk),
        differs=_differs(facts),
        not_compared=_not_compared(evidence, rows, facts),
        how=_how(evidence),
        notes=_notes(evidence),
        about=_about(evidence, rows),
        why_eager=_why_eager(facts),
    )


def _why_eager(facts: CompareData) -> list[tuple[int, ModelVersion, EagerBreakdown]]:
    sides = [
        (slot, version, facts.why_eager.get(version.pk, EagerBreakdown()))
        for slot, version in enumerate(facts.pair, 1)
    ]
    return sides if any(why.lines for _, _, why in sides) else []


def _differs(facts: CompareData) -> TraitDifferences:
    """Traits that separate the candidate's instances from the baseline's."""
    bad, good = (
        [one.id for one in facts.instances if one.version_id == side.version_id]
        for side in (facts.b, facts.a)
    )
    after, before = (
        f"instances of {version.name}" for version in (facts.b.version, facts.a.version)
    )
    return compare_traits(facts.traits, bad, good, bad_words=after, good_words=before)


def _side(
    facts: CompareData, version: int, chosen: Clock
) -> tuple[CallTotals | None, ProcessTotals | None]:
    mine = [row for row in facts.calls if row.version_id == version]
    calls, processes = sum_calls(mine, chosen, all_report_stalls(facts.calls)), ProcessTotals()
    for point in facts.processes:
        if point.version_id == version:
            processes.add(point)
    return calls if calls.calls else None, processes if processes.covered else None


def _strata(facts: CompareData) -> dict[int, str]:
    return {series.stratum_id: series.stratum for series in facts.series.values()}


def _strip(facts: CompareData, evidence: Any, chosen: Clock) -> tuple[StripPlot, str]:
    """The points of the evaluated level; without a verdict, the newest hour of every instance."""
    for name in ("gpu_p50", "p50"):
        points, left_out = points_from_evidence(evidence, name)
        if points:
            rest = f"; {left_out} marks between these are not drawn" if left_out else ""
            title = f"p50, {find_metric(name).detail}"
            return build_strip_plot(title, points), f"evaluated level in matched minutes{rest}"
    title = "p50, GPU time" if chosen == "gpu" else "p50, wall time"
    return build_strip_plot(
        title, _observed_points(facts, chosen)
    ), "observed in the newest hour of both versions, not evaluated"


def _observed_points(facts: CompareData, chosen: Clock) -> list[StripPoint]:
    names = {instance.id: instance for instance in facts.instances}
    callers = chosen == "wall" and all(row.stalled_count is not None for row in facts.points)
    pairs = [
        ((row.instance_id, row.series_id), row.gpu if chosen == "gpu" else row.latency)
        for row in facts.points
    ]
    pairs += (
        [((row.instance_id, row.series_id), row.stalled) for row in facts.points] if callers else []
    )
    merged = merge_packed_by_key(pairs)
    points = []
    for (instance_id, series_id), sketch in merged.items():
        series, instance, value = (
            facts.series[series_id],
            names.get(instance_id),
            sketch.quantile(0.5),
        )
        if instance and value is not None:
            arm = "baseline" if series.version_id == facts.a.version_id else "candidate"
            points.append(
                StripPoint(
                    instance.name,
                    arm,
                    format_cohort(series.stratum, series.bucket),
                    value,
                    sketch.count,
                )
            )
    return points


def _not_compared(evidence: Any, rows: list[EvidenceRow], facts: CompareData) -> list[ExcludedPart]:
    found = [
        ExcludedPart(
            METRICS[one.what].title if one.what in METRICS else one.what,
            describe_not_compared(one.reason)
            + (f"; {numbers.percent(one.share)} of calls" if one.share is not None else ""),
        )
        for one in read_excluded_calls(evidence)
    ]
    muted = [row.title for row in rows if row.label == MUTED]
    if muted:
        found.append(
            ExcludedPart(
                ", ".join(muted),
                "muted in the settings of this model or project; not part of the verdict",
            )
        )
    observed = [row.title for row in rows if not row.judged and row.label != MUTED]
    if observed:
        found.append(
            ExcludedPart(
                ", ".join(observed),
                "not evaluated: raw differences, not adjusted for shapes, machines and load",
            )
        )
    if facts.verdict:
        found.append(_warm_up(evidence, facts))
    return found


def _warm_up(evidence: Any, facts: CompareData) -> ExcludedPart:
    """The excluded first minutes of each process, with the minutes and calls of both versions."""
    if runs := read_runs(evidence):
        minutes = sorted({run.excluded_minutes for run in runs})
        span = f"{minutes[0]} to {minutes[-1]}" if len(minutes) > 1 else str(minutes[0])
        return ExcludedPart(f"First {span} min of each run", "warm-up; not in the evaluated rows")
    warm_up = read_warm_up(evidence)
    if warm_up is None:
        return ExcludedPart("First 5 min of each process", "warm-up; not in the evaluated rows")
    if not warm_up.minutes:
        return ExcludedPart("Warm-up", "none: the settings include the first minutes of processes")
    sides = [
        f"{side.said} of {version.name}"
        + (f" ({side.share_said} of its minutes)" if side.excluded_minutes else "")
        for side, version in zip(
            (warm_up.candidate, warm_up.baseline), facts.pair[::-1], strict=True
        )
    ]
    return ExcludedPart(
        f"First {numbers.format_minutes(warm_up.minutes)} of each process",
        f"{', '.join(filter(None, ('warm-up', warm_up.source_said)))}; {'; '.join(sides)}",
    )


def _how(evidence: Any) -> str:
    """The comparison methods of the verdict."""
    return "; in part ".join(
        COMPARISON_METHODS.get(one, one.replace("_", " "))
        for one in read_coverage(evidence).layouts
    )


def _notes(evidence: Any) -> list[str]:
    """Notes on the shift of the shape mix, which the changes exclude, and on other differences
    between the instances."""
    notes = [
        f"Shape mix of {one.region}: {numbers.change(one.change)} of {one.metric}, already excluded"
        for one in read_mix_shifts(evidence)
        if abs(one.change) >= SMALLEST_MIX_SHIFT
    ]
    different = read_environment(evidence)
    if different:
        said = [
            f"{one.key} {format_values(one.baseline)} to {format_values(one.candidate)}"
            for one in different
        ]
        more = (
            f"; {len(said) - ALSO_SHOWN} more under Configuration" if len(said) > ALSO_SHOWN else ""
        )
        notes.append(f"Other differences: {'; '.join(said[:ALSO_SHOWN])}{more}")
    return notes


def _about(evidence: Any, rows: list[EvidenceRow]) -> list[str]:
    """Short facts next to the badge."""
    worse = sum(row.red and not row.follows for row in rows)
    said = [f"{numbers.plural(worse, 'primary metric')} regressed"] if worse else []
    coverage = read_coverage(evidence)
    if coverage.compared_minutes:
        said.append(f"{numbers.number(coverage.compared_minutes)} min compared")
    if coverage.comparable_share is not None:
        said.append(f"{numbers.percent(coverage.comparable_share)} of calls compared")
    if coverage.low_adoption and coverage.adoption is not None:
        said.append(f"low adoption: {numbers.percent(coverage.adoption)} of calls")
    return said
