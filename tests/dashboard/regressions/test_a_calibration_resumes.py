"""A calibration is stored by deployment: parts that ran separately, were interrupted or ran twice
give the table of one complete run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bench import calibrate

Run = Callable[..., list[str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`run("--shard", "1/2", ...)` runs the command on a few short fleets; returns the lines of its
    table without the duration."""

    def command(*arguments: str) -> list[str]:
        few = ["--hours", ".2", "--rows", "healthy 1 v", "--processes", "1"]
        if "--deployments" not in arguments:
            few += ["--deployments", "4"]
        chosen = [*arguments] if "--combine" in arguments else [*few, *arguments]
        monkeypatch.setattr(sys, "argv", ["calibrate", *chosen])
        calibrate.main()
        return [
            line.rsplit("|", 2)[0]
            for line in capsys.readouterr().out.splitlines()
            if "rocessor time" not in line
        ]

    return command


def test_separate_parts_give_the_table_of_the_whole(run: Run, tmp_path: Path) -> None:
    whole = run("--into", str(tmp_path / "whole"))
    parts = [tmp_path / "first", tmp_path / "second"]
    for number, part in enumerate(parts, 1):
        run("--shard", f"{number}/2", "--into", str(part))
    assert run("--combine", *map(str, parts), str(parts[0])) == whole
    assert sum(line.startswith("| healthy 1 v 1 | 4 |") for line in whole) == 1


def test_an_interrupted_run_resumes(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "kept"
    whole = run("--into", str(file))
    lines = file.read_text().splitlines()
    file.write_text("\n".join(lines[:5]) + "\n" + lines[5][:40])
    assert run("--into", str(file), "--seconds", "0.000001") != whole
    assert run("--into", str(file)) == whole
    assert run("--combine", str(file)) == whole


def test_a_run_with_more_deployments_adds_to_the_stored_ones(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "kept"
    run("--into", str(file), "--deployments", "1")
    first = file.read_text()
    whole = run("--into", str(file))
    assert file.read_text().startswith(first)
    assert run("--into", str(tmp_path / "whole")) == whole


def test_seeds_for_tuning_and_for_the_test_have_tables_of_their_own(
    run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "kept"
    tables = {
        seeds: run("--into", str(file), "--seeds", seeds, "--deployments", "1")
        for seeds in ("tuning", "test")
    }
    for seeds, table in tables.items():
        assert any(f"seeds for {seeds}" in line for line in table)
        assert run("--combine", str(file), "--seeds", seeds) == table


def test_deployments_of_another_judge_are_in_no_table(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "kept"
    run("--into", str(file))
    with file.open("a") as out:
        out.write(
            json.dumps(json.loads(file.read_text().splitlines()[0]) | {"judge": "another"}) + "\n"
        )
    with pytest.raises(SystemExit, match="differ in judge"):
        run("--combine", str(file))
