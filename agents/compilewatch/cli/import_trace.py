"""`compilewatch import-trace`: sends reports built from a TORCH_TRACE folder of a job without the
agent.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

from compilewatch.cli.replay import Recording, deliver
from compilewatch.cli.trace_process import TracedProcess, should_import
from compilewatch.cli.trace_reader import TRACE_GLOB, TraceReader
from compilewatch.config import Config, load
from compilewatch.errors import AgentError
from compilewatch.identity.identity import UNVERSIONED, id_of
from compilewatch.version import __version__
from compilewatch.wire.messages import MAX_WINDOW_AGE, Identity

CAPABILITIES = {"import_trace": ("partly", "from a TORCH_TRACE folder: no calls, no memory")}
UNKNOWN_HOST = "unknown"
_RANK = re.compile(r"_rank_(\d{1,9})_")


def run(
    folder: str,
    settings: dict[str, object],
    *,
    host: str = "",
    job: str = "",
    shift_to_now: bool = False,
) -> int:
    """Runs the command; returns 0 if every window is acknowledged and nothing in the trace is
    damaged.
    """
    config = load(settings)
    processes, damages, damaged = read(Path(folder))
    recordings = [
        _recording(recording, config, host or UNKNOWN_HOST, job, _world_size(processes))
        for recording in processes
    ]
    if config.file is None and not shift_to_now:
        _check_age(recordings)
    count = sum(len(report.compiles) for recording in recordings for report in recording.reports)
    print(
        f"{count} compilations of {len(processes)} processes; a trace holds no calls and no memory"
    )
    return deliver(recordings, config, damages, damaged, shift_to_now=shift_to_now)


def read(folder: Path) -> tuple[list[TracedProcess], list[str], int]:
    """Reads all processes of a folder.

    Returns them, the first damages in words, and the number of damages. Raises an AgentError if
    the folder holds no trace.
    """
    if not folder.is_dir():
        raise AgentError(f"{folder} is not a folder; pass the folder of TORCH_TRACE")
    files = sorted(folder.glob(TRACE_GLOB))
    if not files:
        raise AgentError(f"there is no trace in {folder}: no file matches {TRACE_GLOB}")
    processes, damages, damaged = [], list[str](), 0
    for file in files:
        process, lines = _read(file)
        damages += lines.damages
        damaged += lines.damage_count
        if process.pid:
            processes.append(process)
    if not processes:
        raise AgentError(
            f"no file in {folder} is a trace; {damages[0]}"
            if damages
            else f"every trace in {folder} is empty"
        )
    return processes, damages, damaged


def _read(file: Path) -> tuple[TracedProcess, TraceReader]:
    process, lines = TracedProcess(), TraceReader(file, should_import)
    try:
        for entry in lines:
            try:
                process.add_entry(entry)
            except Exception as error:  # noqa: BLE001 - a damaged entry may hold anything
                lines.record_damage(entry.number, f"unknown format ({type(error).__name__})")
    except OSError as error:
        lines.record_damage(0, error.strerror or type(error).__name__)
    process.close()
    rank_in_name = _RANK.search(file.name)
    if process.rank is None and rank_in_name:
        process.rank = int(rank_in_name[1])
    return process, lines


def _world_size(processes: list[TracedProcess]) -> int:
    """Returns the smallest possible world size."""
    return 1 + max((process.rank or 0 for process in processes), default=0)


def _recording(
    process: TracedProcess, config: Config, host: str, job: str, world_size: int
) -> Recording:
    identity = Identity(
        id=id_of(int(process.clock * 1000), process.random_bits),
        started=process.started,
        model=config.model,
        version=config.version or UNVERSIONED,
        environment=config.environment,
        kind=config.kind,
        job=job,
        rank=process.rank or 0,
        world_size=world_size,
        host=host,
        pid=process.pid,
        agent=__version__,
        simulated=config.simulated,
        capabilities=dict(CAPABILITIES),
        **process.versions,  # type: ignore[arg-type]
    )
    return Recording(identity, process.reports)


def _check_age(recordings: list[Recording]) -> None:
    ends = [report.window[1] for recording in recordings for report in recording.reports]
    days = MAX_WINDOW_AGE / 86400
    old = sum(end < time.time() - MAX_WINDOW_AGE for end in ends)
    if old:
        raise AgentError(
            f"{old} of {len(ends)} windows are older than {days:.0f} days, and dashboards "
            "reject them; add --shift-to-now to move them"
        )
