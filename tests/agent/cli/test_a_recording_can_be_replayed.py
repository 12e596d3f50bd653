"""Reports that were recorded to a file are sent later, with their times shifted so that the last
window ends now."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path

import pytest

from tests.agent.programs import command, run
from tests.agent.server import Dashboard

JOB = """
import time, compilewatch
compilewatch.init(model="m", version="7", interval=0.05)
call = compilewatch.watch(lambda: None, name="forward")
for _ in range(40):
    call()
    time.sleep(0.01)
compilewatch.mark("end")
"""


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "reports.jsonl"
    done = run(JOB, ENDPOINT=f"file:{path}")
    assert (done.returncode, done.stderr) == (0, "")
    return path


def recorded(path: Path) -> list[dict[str, object]]:
    return [
        report for line in path.read_text().splitlines() for report in json.loads(line)["reports"]
    ]


def test_every_window_arrives_as_it_was(recording: Path, dashboard: Dashboard) -> None:
    done = command("replay", str(recording), ENDPOINT=dashboard.endpoint, API_KEY="k")
    assert (done.returncode, done.stderr) == (0, "")
    assert dashboard.calls("forward") == 40
    assert list(dashboard.acked.values()) == recorded(recording)
    assert (
        f"{len(recorded(recording))} windows of 1 instances acknowledged, 0 rejected, 0 not sent"
        in done.stdout
    )


def test_a_second_replay_sends_the_same_instance_or_with_new_ids_another(
    recording: Path, dashboard: Dashboard
) -> None:
    for words in ([], [], ["--new-ids"]):
        assert (
            command(
                "replay", str(recording), "--endpoint", dashboard.endpoint, "--key", "k", *words
            ).returncode
            == 0
        )
    ids = [request["instance"]["id"] for request in dashboard.requests]
    assert len(set(ids)) == 2
    assert dashboard.calls("forward") == 80


def test_shifted_times_keep_their_intervals(recording: Path, dashboard: Dashboard) -> None:
    lines = [json.loads(line) for line in recording.read_text().splitlines()]
    for line in lines:
        for report in line["reports"]:
            report["window"] = [at - 86400 for at in report["window"]]
            for fact in report.get("facts", []):
                fact["at"] -= 86400
    recording.write_text("\n".join(map(json.dumps, lines)))
    before = recorded(recording)
    command("replay", str(recording), "--shift-to-now", ENDPOINT=dashboard.endpoint, API_KEY="k")
    after = list(dashboard.acked.values())
    moved = after[0]["window"][0] - before[0]["window"][0]  # type: ignore[index]
    assert 86_000 < moved < 87_000
    assert abs(after[-1]["window"][1] - time.time()) < 300
    for old, new in zip(before, after, strict=True):
        assert new["window"] == pytest.approx([at + moved for at in old["window"]])  # type: ignore[attr-defined]
    [mark] = [
        fact for report in after for fact in report.get("facts", []) if fact["kind"] == "mark"
    ]
    assert after[0]["window"][0] <= mark["at"] <= after[-1]["window"][1]


def test_many_windows_go_in_batches(tmp_path: Path, dashboard: Dashboard) -> None:
    instance = {"id": "a" * 26, "started": 0.0, "model": "m", "version": "1"}
    reports = [{"seq": [i, i], "window": [float(i), float(i + 1)]} for i in range(1, 101)]
    path = tmp_path / "many.jsonl"
    path.write_text(
        "\n".join(
            json.dumps({"v": 1, "sent": 1.0, "instance": instance, "reports": [one]})
            for one in reports
        )
    )
    assert command("replay", str(path), ENDPOINT=dashboard.endpoint, API_KEY="k").returncode == 0
    assert [len(request["reports"]) for request in dashboard.requests] == [32, 32, 32, 4]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot read"),
        ("{", "line 1: the body is not JSON"),
        ('{"v": 1}', "line 1: sent: is missing"),
    ],
)
def test_a_file_without_a_whole_line_is_reported_in_one_sentence(
    tmp_path: Path, content: str | None, said: str
) -> None:
    path = tmp_path / "wrong.jsonl"
    if content is not None:
        path.write_text(content)
    done = command("replay", str(path), ENDPOINT="http://127.0.0.1:9", API_KEY="k")
    assert done.returncode == 2
    assert said in done.stderr and done.stderr.count("\n") == 1


def test_a_partial_line_is_skipped_and_named(recording: Path, dashboard: Dashboard) -> None:
    whole = recording.read_bytes()
    other = whole.replace(json.loads(whole.splitlines()[0])["instance"]["id"].encode(), b"b" * 26)
    first, torn = other.splitlines(keepends=True)[0], other.splitlines()[-1][:-40]
    # One process was killed in the middle of a line; another process continued from that point and
    # was killed too.
    recording.write_bytes(first + torn + whole + torn)
    done = command("replay", str(recording), ENDPOINT=dashboard.endpoint, API_KEY="k")
    assert (done.returncode, done.stderr) == (1, "")
    lines = whole.count(b"\n")
    [said, *left_out] = done.stdout.splitlines()
    assert "windows of 2 instances acknowledged, 0 rejected, 0 not sent" in said
    assert [line.split(": the body is not JSON")[0] for line in left_out] == [
        "skipped: line 2",
        f"skipped: line {lines + 2}",
    ]
    assert len(dashboard.acked) == len(recorded_in(whole)) + len(recorded_in(first))


def recorded_in(lines: bytes) -> list[object]:
    return [report for line in lines.splitlines() for report in json.loads(line)["reports"]]


def test_a_truncated_packed_recording_is_sent_up_to_the_break(
    recording: Path, dashboard: Dashboard
) -> None:
    instance = {"id": "a" * 26, "started": 0.0, "model": "m", "version": "1"}
    lines = [
        {
            "v": 1,
            "sent": 1.0,
            "instance": instance,
            "reports": [{"seq": [i, i], "window": [0.0, 1.0]}],
        }
        for i in range(1, 20_000)
    ]
    packed = gzip.compress("\n".join(map(json.dumps, lines)).encode())
    recording.write_bytes(packed[: len(packed) // 2])
    done = command("replay", str(recording), ENDPOINT=dashboard.endpoint, API_KEY="k")
    assert done.returncode == 1
    assert "skipped: after line" in done.stdout
    assert 0 < len(dashboard.acked) < 20_000


def test_a_refused_key_is_reported_and_fails(
    recording: Path, dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = json.dumps({"cw": 1, "code": "bad_key", "detail": "the key is unknown"}).encode()
    dashboard.scripts = [lambda data: (401, {}, body)] * 99
    done = command("replay", str(recording), ENDPOINT=dashboard.endpoint, API_KEY="k")
    assert done.returncode == 1
    assert "HTTP 401 bad_key: the key is unknown" in done.stdout
