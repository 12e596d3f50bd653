"""With COMPILEWATCH_REDACT=strict, no text that comes from the job, its code or its host leaves the
process; every count does."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from compilewatch.identity.redaction import fingerprint, identity_redact, redact_report
from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import Compile, Fact, Finding, Gauges, Identity, Region, Report
from compilewatch.wire.numerics import Parity, parity_data, parity_of
from hypothesis import given
from hypothesis import strategies as st

from tests.agent.conftest import KEY
from tests.agent.programs import command, run
from tests.agent.server import Dashboard

TEXTS = ("borrower", "ledger", "mortgage", "teller", "vault", "bullion", "cashier")
JOB = """
import os, torch, compilewatch
os.environ["SLURM_JOB_ID"] = "teller-17"
compilewatch.init(model="m", version="1", interval=200)

def borrower(x, ledger):
    if ledger["mortgage"] > 2:
        print("rated")
    return x * ledger["mortgage"]

vault = compilewatch.compile(borrower, name="vault", backend="eager", dynamic=False)
for rate in range(5):
    vault(torch.ones(4), {"mortgage": rate})
counted = compilewatch.watch(lambda x: x, name="cashier", bucket=lambda x: "bullion")
counted(1)
compilewatch.mark("bullion moved", cashier="teller", amount=3)
"""


def reported(folder: Path, **settings: str) -> tuple[str, list[dict[str, Any]]]:
    """The text that a real job sends, and its windows."""
    folder.mkdir()
    program = folder / "ledger_job.py"
    program.write_text(JOB)
    recording = folder / "reports.jsonl"
    done = run(program, ENDPOINT=f"file:{recording}", **settings)
    assert (done.returncode, done.stderr) == (0, "")
    lines = recording.read_text()
    return lines, [report for line in lines.splitlines() for report in json.loads(line)["reports"]]


def test_a_real_job_sends_its_counts_and_none_of_its_texts(
    tmp_path: Path, dashboard: Dashboard
) -> None:
    open_text, open_reports = reported(tmp_path / "open")
    strict_text, strict_reports = reported(tmp_path / "strict", REDACT="strict")
    # a short name may occur by chance in the letters of a packed sketch
    host = f'"{socket.gethostname()}"'
    words = (*TEXTS, host)
    assert [word for word in words if word not in open_text] == []
    assert [word for word in words if word in strict_text] == []
    assert counts(strict_reports) == counts(open_reports)
    replayed = command(
        "replay",
        str(tmp_path / "open" / "reports.jsonl"),
        ENDPOINT=dashboard.endpoint,
        API_KEY=KEY,
        REDACT="strict",
    )
    assert replayed.returncode == 0
    assert [word for word in words if word.encode() in b"".join(dashboard.bodies)] == []
    doctor = command("doctor", "--json", ENDPOINT=dashboard.endpoint, API_KEY=KEY, REDACT="strict")
    assert json.loads(doctor.stdout)["identity"]["host"] == fingerprint(socket.gethostname())
    assert host.encode() not in b"".join(dashboard.bodies)


def counts(reports: list[dict[str, Any]]) -> list[Any]:
    """All counts of the windows, in an order that does not depend on names."""
    regions = sorted(
        (region["calls"], region.get("compiled", 0), region.get("mode"))
        for report in reports
        for region in report.get("regions", ())
    )
    compiles = [
        (one["kind"], one["outcome"], sorted(one["seconds"]))
        for report in reports
        for one in report.get("compiles", ())
    ]
    findings = sorted(
        (one["kind"], one.get("count", 1))
        for report in reports
        for one in report.get("findings", ())
    )
    facts = [one["kind"] for report in reports for one in report.get("facts", ())]
    return [regions, compiles, findings, facts]


text = st.text(alphabet=st.characters(min_codepoint=0xC0, max_codepoint=0x2FF), min_size=2)
"""In letters that occur in no protocol word."""


@given(text, st.dictionaries(text, st.one_of(text, st.lists(text), st.integers())))
def test_any_text_in_any_place_is_replaced(secret: str, data: dict[str, Any]) -> None:
    compile = Compile(
        1.0,
        "0/1",
        "first",
        "ok",
        frame=secret,
        file=secret,
        line=7,
        reason=secret,
        mode=secret,
        seconds={"total": 2.0},
    )
    report = Report(
        (1, 1),
        (0.0, 1.0),
        [Region(secret, 3, bucket=secret, mode=secret, eager_by={"limit": 3})],
        [compile],
        [Finding("guard", secret, secret, 4)],
        Gauges(compiling_frame=secret),
        [Fact("mark", 1.0, {**data, "name": secret, secret: {secret: [secret]}})],
    )
    identity = Identity(
        "a" * 26, 0.0, "m", "1", host=secret, job=secret, capabilities={"limits": ("no", secret)}
    )
    identity_redact(identity)
    left = json.dumps(json.loads(dumps(redact_report(report))), ensure_ascii=False) + repr(identity)
    assert left.isascii()
    assert redact_report(redact_report(report)) == redact_report(report)


def test_protocol_words_are_kept() -> None:
    for word in (
        "limit",
        "recompile",
        "2^12",
        "other",
        "",
        "0/1",
        "torch.compile",
        "reduce-overhead",
        "agent switched itself off",
    ):
        assert fingerprint(word) == word
    assert fingerprint("forward") == fingerprint("forward") != fingerprint("backwards")


def test_the_commands_that_a_process_allows_stay_readable() -> None:
    for allowed in (("freeze", "eager"), ("eager",)):
        identity = Identity(
            "a" * 26, 0.0, "m", "1", capabilities={"switch": ("yes", ", ".join(allowed))}
        )
        identity_redact(identity)
        assert identity.capabilities["switch"] == ("yes", ", ".join(allowed))


def test_a_word_other_than_strict_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    done = run(
        "import compilewatch; print(compilewatch.init(model='m'))",
        ENDPOINT="file:/dev/null",
        REDACT="yes",
    )
    assert (done.stdout, done.stderr) == (
        "False\n",
        "compilewatch: off: redact must be strict or empty, got 'yes'\n",
    )


def test_the_kind_of_parity_stays_readable() -> None:
    reported = parity_data(
        Parity(
            "shadow calls of their model", "passed", kind="shadow", region="their model", samples=3
        )
    )
    (fact,) = redact_report(Report((1, 1), (0.0, 1.0), facts=[Fact("parity", 0.5, reported)])).facts
    back = parity_of(fact.data)
    assert (back.kind, back.state, back.samples) == ("shadow", "passed", 3) and "their" not in str(
        fact.data
    )
