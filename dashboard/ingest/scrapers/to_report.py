"""Report builder for scraped engines: turns the difference between two snapshots into a wire
request. Values that an engine cannot report are marked as unknown. Pure code."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from compilewatch.wire.messages import VERSION, Compile, Fact, Identity, Region, Report, Request

from dashboard.ingest.scrapers.histogram import build_sketch, find_widest_ratio
from dashboard.ingest.scrapers.metric_names import EngineFormat, EngineHistogram
from dashboard.ingest.scrapers.parser import Histogram, Snapshot, name_layout
from dashboard.vocabulary.numbers import significant

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
UNREPORTED_REASON = (
    "an engine's metrics do not contain this; run the agent as a plugin in vLLM's workers"
)
MODE, MODE_WITH_ERRORS = "engine", "engine, errors told"
"""Mode of every scraped stratum, without and with a count of failed requests. No agent writes these
modes."""
MODES = (MODE, MODE_WITH_ERRORS)
ERRORS_NOTE = (
    "requests that the engine itself failed to finish; excludes refused requests and "
    "disconnected clients"
)
UNREPORTED_CAPABILITIES = ("errors", "memory", "gpu_time", "guard_lookups")


@dataclass(frozen=True)
class Engine:
    """The scraped engine, as the operator named it."""

    address: str
    project_id: int
    model: str
    version: str
    environment: str
    gpu: str
    host: str


def derive_instance_id(engine: Engine, started: float) -> str:
    """The ID of one run of the engine: constant while it runs, different after a restart."""
    parts = (engine.project_id, engine.address, engine.model, engine.version, engine.environment)
    seed = "\0".join(map(str, (*parts, int(started))))
    number = int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=20).digest(), "big")
    letters = []
    for _ in range(26):
        number, place = divmod(number, 36)
        letters.append(_ALPHABET[place])
    return "".join(letters)


def build_request(
    *,
    engine: Engine,
    wanted: EngineFormat,
    started: float,
    seq: int,
    window: tuple[float, float],
    found: Snapshot,
    bounds: dict[str, list[float]],
    log: bool = False,
) -> Request:
    """One report. An answer without a known name has no regions, and its instance is blind."""
    regions = [
        _build_region(part, wanted.engine, found.parts[part.region], found)
        for part in wanted.select_parts(found.parts)
    ]
    identity = build_identity(
        engine, wanted, started, bounds, log=log, failures=found.failed is not None
    )
    report = Report(
        seq=(seq, seq), window=window, regions=[region for region in regions if region.calls]
    )
    return Request(v=VERSION, sent=window[1], instance=identity, reports=[report])


def build_identity(
    engine: Engine,
    wanted: EngineFormat,
    started: float,
    bounds: dict[str, list[float]],
    *,
    log: bool,
    failures: bool,
) -> Identity:
    """Identity and capabilities of a scraped engine. `log`: its start-up log was read; `failures`:
    it counts failures."""
    table = build_capabilities(wanted, bounds)
    if failures:
        table["errors"] = ("partly", ERRORS_NOTE)
    if log:
        table["compilations"] = ("partly", "the total of the start, from the engine's log")
    return Identity(
        id=derive_instance_id(engine, started),
        started=started,
        model=engine.model,
        version=engine.version,
        environment=engine.environment,
        gpu=engine.gpu,
        host=engine.host,
        agent=f"scraped {wanted.engine}",
        capabilities=table,
    )


def build_startup_report(seq: int, at: float, runtime: str, stages: dict[str, float]) -> Report:
    """A report of the start-up log: torch.compile as one compilation, graph capture as a mark."""
    report = Report(seq=(seq, seq), window=(at - 1.0, at))
    if "torch.compile" in stages:
        frame, total = f"{runtime} start", {"total": stages["torch.compile"]}
        report.compiles.append(
            Compile(
                at=at,
                id="start",
                kind="first",
                outcome="ok",
                frame=frame,
                seconds=total,
                backend=runtime,
            )
        )
    for name, seconds in stages.items():
        report.facts.append(
            Fact(kind="mark", at=at, data={"name": f"{name} {significant(seconds, 6)} s"})
        )
    return report


def build_capabilities(
    wanted: EngineFormat, bounds: dict[str, list[float]]
) -> dict[str, tuple[str, str]]:
    """The capabilities of a scraped engine, with their accuracy."""
    table = dict.fromkeys(
        ("compiled_calls", "compilations", *UNREPORTED_CAPABILITIES), ("no", UNREPORTED_REASON)
    )
    for part in (
        *([wanted.front.part] if wanted.front and wanted.front.part.region in bounds else []),
        *wanted.parts,
    ):
        if part.region not in bounds:
            table[f"latency of {part.region}"] = (
                "no",
                f"the engine does not export {part.names[0]}",
            )
            continue
        share = find_widest_ratio(bounds[part.region])
        said = (
            "counts are exact; a quantile is known to the engine's bucket, which is up to "
            f"{share:.0%} wide"
            if share
            else "one bucket only"
        )
        table[f"latency of {part.region}"] = ("partly", said)
    return table


def _build_region(part: EngineHistogram, runtime: str, found: Histogram, whole: Snapshot) -> Region:
    """A region; tokens and failures belong to whole requests."""
    calls = sum(found.counts)
    failed = whole.failed if part.outermost else None
    return Region(
        name=part.region,
        calls=calls,
        bucket=name_layout(found.bounds),
        mode=MODE if failed is None else MODE_WITH_ERRORS,
        runtime=runtime,
        outermost=part.outermost,
        errors=min(calls, int(failed or 0)),
        items=whole.tokens if part.outermost else None,
        unknown=calls,
        latency=build_sketch(found.bounds, found.counts, found.total),
    )
