"""The program in the reference sends the example report; settings, capabilities, fields and
commands in the guides exist."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from compilewatch.cli.doctor import Diagnosis
from compilewatch.cli.main import _parser
from compilewatch.config import Config
from compilewatch.sources import SOURCES

from tests.agent.guides import read_guides, read_section
from tests.agent.programs import run
from tests.agent.pythons import AGENT

GUIDES = read_guides()
SETTINGS = (AGENT / "docs/reference/settings.md").read_text()
EXAMPLE = read_section("docs/reference/reports.md", "Example report")


def block(kind: str) -> str:
    """The first block of this kind in the section of the report."""
    return EXAMPLE.split(f"```{kind}\n")[1].split("```")[0]


def paths(data: Any, where: str = "") -> Iterator[str]:
    """Every field at any depth; for free tables only the name of the table."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield f"{where}.{key}"
            if key not in ("seconds", "components", "stages", "phases", "data"):
                yield from paths(value, f"{where}.{key}")
    elif isinstance(data, list):
        for item in data:
            yield from paths(item, where)


def test_the_program_sends_every_field_that_is_shown(tmp_path: Path) -> None:
    program, recording = tmp_path / "ranker.py", tmp_path / "reports.jsonl"
    program.write_text(block("python"))
    done = run(program, ENDPOINT=f"file:{recording}")
    assert (done.returncode, done.stderr) == (0, "")
    sent = {path for line in recording.read_text().splitlines() for path in paths(json.loads(line))}
    shown = set(paths(json.loads(block("json"))))
    assert shown - sent == set()
    assert len(shown) > 60


def test_every_setting_and_every_field_of_doctor_is_explained() -> None:
    assert [
        one.name for one in fields(Config) if not re.search(rf"\b{one.name.upper()}\b", SETTINGS)
    ] == []
    assert [one.name for one in fields(Diagnosis) if f"`{one.name}`" not in GUIDES] == []


def test_every_capability_of_a_source_is_explained() -> None:
    page = (AGENT / "docs/reference/capabilities.md").read_text()
    assert [name for _, name, _ in SOURCES if f"| `{name}` |" not in page] == []


def test_every_command_exists() -> None:
    commands = re.findall(r"`compilewatch ([a-z][^`]*)`", GUIDES)
    assert {words.split()[0] for words in commands} >= {"run", "doctor", "replay"}
    for words in commands:
        assert _parser().parse_args(shlex.split(words)).command is not None
