"""The comparison, row by row: the agent's report of a run compared with torch's trace of the same
run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from compilewatch.sources.dynamo.compilation_metrics import RACE
from compilewatch.sources.dynamo.compile_history import REPEAT_REASONS
from compilewatch.sources.dynamo.scrubber import guard_reason
from compilewatch.wire.messages import Compile, Report

from tests.agent.ground_truth.cases import Case
from tests.agent.ground_truth.running import Recorded, Run
from tests.agent.ground_truth.trace import CACHES, Trace

SECONDS_SHARE, SECONDS_EACH = 0.01, 0.002
"""The allowed difference of the summed durations: a share of the trace's sum, and a constant for
each compilation."""
RACING = "runtime guards failed even though they passed"


@dataclass
class Row:
    """One measure of one process."""

    case: str
    start: str
    rank: int
    measure: str
    agent: Any
    trace: Any
    agrees: bool
    why: str
    """The explanation of an expected difference."""

    @property
    def fault(self) -> str:
        """The fault of this row; empty if there is none."""
        where = (
            f"{self.case}, {self.start}, rank {self.rank}, {self.measure}: the agent reports "
            f"{self.agent}, the trace {self.trace}"
        )
        if not self.agrees and not self.why:
            return f"{where}, and nothing explains it"
        if self.agrees and self.why:
            return f"{where}, so this reason is obsolete: {self.why}"
        return ""


def rows_of(case: Case, run: Run) -> list[Row]:
    """The rows of all processes of a run; a process without a trace compiled nothing, and the agent
    must report the same."""
    assert len(run.recorded) == case.processes, (
        f"{case.name}: {len(run.recorded)} instances reported, {case.processes} were expected"
    )
    traces = run.traces or [Trace() for _ in run.recorded]
    assert len(traces) == case.processes, (
        f"{case.name}: {len(traces)} traces for {case.processes} processes"
    )
    return [
        Row(case.name, run.start, rank, measure, agent, trace, agrees, case.why(measure, run.start))
        for rank, (recorded, traced) in enumerate(zip(run.recorded, traces, strict=True))
        for measure, agent, trace, agrees in _measures(case, recorded, traced)
    ]


def _measures(case: Case, recorded: Recorded, trace: Trace) -> Iterator[tuple[str, Any, Any, bool]]:
    compiles = [compile for report in recorded.reports for compile in report.compiles]
    forwards = [compile for compile in compiles if compile.kind in ("first", "recompile", "empty")]
    recompiles = [
        compile
        for compile in forwards
        if compile.kind == "recompile" and compile.reason_kind not in REPEAT_REASONS
    ]
    reasons = _reasons(forwards)
    pairs: list[tuple[str, Any, Any]] = [
        ("compile ids", _ids(forwards), _plain(trace.started)),
        ("forward records", _ids(forwards), _plain(trace.forwards)),
        (
            "backward records",
            _ids([one for one in compiles if one.kind == "backward"]),
            _plain(trace.backwards),
        ),
        ("recompiled ids", sorted(one.id for one in recompiles), sorted(trace.reasons)),
        ("recompile reasons", reasons, _listed(reasons, trace.reasons)),
        (
            "failures",
            sorted(one.id for one in forwards if one.outcome != "ok"),
            sorted(trace.failures),
        ),
        ("breaks", _findings(recorded.reports, "graph_break"), trace.breaks.total()),
        ("limits", _limits(recorded.reports), trace.limits),
        ("cache answers", _plain(_answers(compiles)), _plain(trace.caches)),
        ("calls", _calls(recorded.reports), dict(sorted(case.regions.items()))),
        ("losses", [_losses(recorded.reports)], [0]),
    ]
    for measure, agent, traced in pairs:
        yield measure, agent, traced, agent == traced
    seconds = round(
        sum(one.seconds["total"] for one in compiles if one.kind not in ("autotune", "cuda_graph")),
        3,
    )
    margin = SECONDS_SHARE * trace.seconds + SECONDS_EACH * len(compiles)
    yield "seconds", seconds, round(trace.seconds, 3), abs(seconds - trace.seconds) <= margin


def _ids(compiles: list[Compile]) -> dict[str, int]:
    return _plain(Counter(one.id for one in compiles))


def _plain(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))


def _reasons(forwards: list[Compile]) -> dict[str, list[str]]:
    recorded = [one for one in forwards if one.reason_kind in ("guard", "race", "limit")]
    return {
        one.id: sorted(one.reason.split("\n")) for one in sorted(recorded, key=lambda one: one.id)
    }


def _listed(agent: dict[str, list[str]], trace: dict[str, list[str]]) -> dict[str, list[str]]:
    """The reasons of torch, one per cache entry, that the agent blames; all reasons if the agent
    blames none of them."""
    listed = {one: [_as_reported(text) for text in texts] for one, texts in sorted(trace.items())}
    return {
        one: [text for text in agent.get(one, []) if text in texts] or texts
        for one, texts in listed.items()
    }


def _as_reported(reason: str) -> str:
    """Torch's text as the agent reports it."""
    return RACE if RACING in reason else guard_reason(reason)


def _findings(reports: list[Report], kind: str) -> int:
    return sum(
        finding.count for report in reports for finding in report.findings if finding.kind == kind
    )


def _limits(reports: list[Report]) -> int:
    return sum(
        fact.kind == "latched_eager" and fact.data["cause"] == "limit"
        for report in reports
        for fact in report.facts
    )


def _answers(compiles: list[Compile]) -> Counter[str]:
    """Answers of the caches that the trace names: Triton's bundle and the autotuner's cache leave
    nothing in the trace."""
    return Counter(
        f"{cache} {answer}"
        for one in compiles
        for cache, answer in one.cache.items()
        if cache in CACHES.values()
    )


def _calls(reports: list[Report]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for report in reports:
        for region in report.regions:
            counts[region.name] += region.calls
    return _plain(counts)


def _losses(reports: list[Report]) -> int:
    last = reports[-1].losses
    return last.truncated_events + last.internal_errors
