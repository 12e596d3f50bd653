"""Small programs with threads and a changed shape, two processes each: the dashboard's counts are
the sums of the programs' own counts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest
from compilewatch.wire.sketch import Sketch

from tests.flow.counting_job import KINDS
from tests.flow.stack import REPOSITORY, Stack, wait_for

pytestmark = pytest.mark.timeout(400)
PROCESSES = 2
EAGER = " + ".join(
    f"eager_{cause}" for cause in ("limit", "stance", "skip", "disabled", "error", "no_graph")
)
COUNTS = f"""
SELECT model_version.name, stratum.runtime, calls, compiled, partial, {EAGER}, unknown, errors, stalled_count, warmup
FROM version_minute JOIN series ON series.id = series_id JOIN stratum ON stratum.id = stratum_id
JOIN model_version ON model_version.id = series.version_id WHERE region = 'score'
"""
CAUSES = """
SELECT model_version.name, finding.kind, finding.text FROM finding_version
JOIN finding ON finding.id = finding_id JOIN model_version ON model_version.id = finding_version.version_id
"""


def start(stack: Stack, kind: str) -> subprocess.Popen[str]:
    reporting = {
        "COMPILEWATCH_ENDPOINT": f"http://127.0.0.1:{stack.port}",
        "COMPILEWATCH_API_KEY": stack.key,
    }
    command = [sys.executable, "-m", "tests.flow.counting_job", kind]
    return subprocess.Popen(
        command,
        cwd=REPOSITORY,
        env={**stack.environment, **reporting},
        stdout=subprocess.PIPE,
        text=True,
    )


def folded(stack: Stack) -> dict[str, Counter[str]]:
    """The dashboard's counts, by version. A callable that never runs compiled code has the runtime
    `eager`, for any cause."""
    found: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for (
        version,
        runtime,
        calls,
        compiled,
        partial,
        eager,
        unknown,
        errors,
        stalled,
        warmup,
    ) in stack.rows(COUNTS):
        waited = stalled + (Sketch.unpack(bytes(warmup)).count if warmup else 0)
        eager += (
            calls - compiled - partial - eager - unknown - errors - waited
            if runtime == "eager"
            else 0
        )
        found[version] += Counter(
            calls=calls,
            compiled=compiled,
            partial=partial,
            eager=eager,
            unknown=unknown,
            errors=errors,
            waited=waited,
        )
    return found


def test_the_dashboard_counts_what_a_program_counts(stack: Stack) -> None:
    own: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    jobs = [(kind, start(stack, kind)) for kind in KINDS for _ in range(PROCESSES)]
    for kind, job in jobs:
        said, _ = job.communicate(timeout=240)
        assert job.returncode == 0
        own[kind] += Counter(json.loads(said))
    wait_for("everything is folded", stack.folded, seconds=60)
    assert folded(stack) == own
    assert {kind: counts["calls"] for kind, counts in own.items()} == dict.fromkeys(
        KINDS, PROCESSES * 94
    )
    assert (own["shapes"]["waited"], own["fallback"]["waited"], own["dropped"]["eager"]) == (
        6,
        24,
        188,
    )
    causes = stack.rows(CAUSES)
    assert {
        version for version, kind, text in causes if kind == "guard" and "size mismatch" in text
    } == {"shapes", "fallback"}
    assert [
        version
        for version, kind, text in causes
        if kind == "compile_error" and "no kernel for this size" in text
    ] == ["fallback"]
    assert [version for version, kind, _ in causes if kind == "compiled_nothing"] == ["dropped"]
