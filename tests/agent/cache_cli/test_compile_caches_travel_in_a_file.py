"""`compilewatch cache save` and `load` make a start on another machine warm; a useless or damaged
file changes nothing."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path

import pytest
from compilewatch.cache_cli.archive import MAGIC
from compilewatch.sources.inductor.loaded_keys import FILE_NAME, read_local_keys

from tests.agent.programs import command
from tests.agent.recordings import compilations
from tests.machine import need

WARM_UP = """
import sys
import torch

@torch.compile
def product(x):
    return (x @ x).relu().sum()

product(torch.ones(8, 8))
"""
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a program, and the cache file that was saved from that program."""
    need("a C++ compiler")
    place = tmp_path_factory.mktemp("place")
    (place / "warm_up.py").write_text(WARM_UP)
    done = on_machine(
        "first",
        place,
        "cache",
        "save",
        "--model",
        "ranker",
        "warm.cache",
        "--",
        "python",
        "warm_up.py",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "saved 2 entries (1 aot_autograd, 1 inductor)" in done.stdout
    return place


def on_machine(
    name: str, place: Path, *words: str, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Here a machine is a folder of compile caches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(place / name))
        return command(*words, folder=place, SPOOL="off", **settings)


def test_a_start_after_a_load_is_warm_and_reports_the_source_of_its_hits(folder: Path) -> None:
    loaded = on_machine("second", folder, "cache", "load", "warm.cache")
    assert (loaded.returncode, loaded.stderr) == (0, "")
    assert "loaded 2 entries (1 aot_autograd, 1 inductor)" in loaded.stdout
    recording = folder / "second.jsonl"
    done = on_machine(
        "second",
        folder,
        "run",
        "--",
        "python",
        "warm_up.py",
        ENDPOINT=f"file:{recording}",
        MODEL="ranker",
    )
    assert done.returncode == 0
    (compilation,) = compilations(recording)
    assert compilation.cache == {"fx": "hit", "aot": "hit", "mega": "hit"}


def test_a_start_without_a_load_is_cold_and_reports_no_mega_cache(folder: Path) -> None:
    recording = folder / "third.jsonl"
    on_machine(
        "third",
        folder,
        "run",
        "--",
        "python",
        "warm_up.py",
        ENDPOINT=f"file:{recording}",
        MODEL="ranker",
    )
    (compilation,) = compilations(recording)
    assert compilation.cache == {"fx": "miss", "aot": "miss"}


def test_the_file_names_its_environment_and_is_private_to_its_user(folder: Path) -> None:
    file = folder / "warm.cache"
    with file.open("rb") as opened:
        told = json.loads(opened.readline().removeprefix(MAGIC))
    assert told["made_with"].keys() >= {"torch", "python", "machine"}
    assert (told["model"], told["artifacts"]) == ("ranker", {"inductor": 1, "aot_autograd": 1})
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not list(folder.glob(".warm.cache*"))


def altered(folder: Path, name: str, before: bytes, after: bytes) -> str:
    data = (folder / "warm.cache").read_bytes()
    line, _, caches = data.partition(b"\n")
    assert before in line
    (folder / name).write_bytes(line.replace(before, after) + b"\n" + caches)
    return name


@pytest.mark.engines_only
def test_a_file_of_another_torch_is_not_loaded_and_the_check_agrees(folder: Path) -> None:
    other = altered(folder, "other.cache", b'"torch": "2.', b'"torch": "1.')
    done = on_machine("fourth", folder, "cache", "load", other)
    assert done.returncode == 1
    assert "was built in another environment: torch 1." in done.stdout
    assert "Nothing was loaded." in done.stdout
    assert not (folder / "fourth").exists() or not list((folder / "fourth").glob("fxgraph/*"))
    check = on_machine("fourth", folder, "cache-check", "--file", other)
    assert (check.returncode, check.stdout.startswith("will miss: torch 1.")) == (1, True)
    assert on_machine("fifth", folder, "cache", "load", "--anyway", other).returncode == 0


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (lambda data: data[:2000], "is shorter than its header announces"),
        (lambda data: data + b"more", "is longer than its header announces"),
        (
            lambda data: data[:-1] + bytes([data[-1] ^ 1]),
            "its content differs from the saved content",
        ),
        (lambda data: data.replace(b'"size"', b'"sise"', 1), "its header cannot be read"),
        (lambda data: data.replace(b'"size": ', b'"size": -', 1), "its header cannot be read"),
        (lambda data: MAGIC + b"[" * 70_000, "its header cannot be read"),
        (lambda data: b"PK\x03\x04", "is not a file of `compilewatch cache save`"),
        (lambda data: b"", "is not a file of `compilewatch cache save`"),
    ],
)
def test_a_damaged_file_is_reported_in_one_sentence(
    folder: Path, tmp_path: Path, harm: object, sentence: str
) -> None:
    assert callable(harm)
    (tmp_path / "harmed.cache").write_bytes(harm((folder / "warm.cache").read_bytes()))
    done = on_machine("sixth", folder, "cache", "load", str(tmp_path / "harmed.cache"))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert sentence in done.stderr
    assert not (folder / "sixth" / "fxgraph").exists()


@pytest.mark.parametrize(
    ("program", "code", "sentence"),
    [
        ("import sys; sys.exit(3)", 3, ""),
        ("raise ValueError('no model')", 1, "ValueError: no model"),
        ("import torch", 1, "nothing to save"),
        ("pass", 1, "nothing to save"),
    ],
)
def test_a_program_that_fails_or_compiles_nothing_leaves_no_file(
    folder: Path, program: str, code: int, sentence: str
) -> None:
    done = on_machine(
        "seventh", folder, "cache", "save", "none.cache", "--", "python", "-c", program
    )
    assert (done.returncode, sentence in done.stdout + done.stderr) == (code, True)
    assert not list(folder.glob("*none.cache*"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["save", "nowhere/x.cache", "--", "python", "warm_up.py"],
            "nowhere/x.cache cannot be written: the folder",
        ),
        (["save", "x.cache", "--", "torchrun", "warm_up.py"], "cache save accepts one process"),
        (["load", "nothing.cache"], "nothing.cache cannot be read: No such file or directory"),
    ],
)
def test_wrong_usage_is_reported_in_one_sentence_before_anything_runs(
    folder: Path, words: list[str], sentence: str
) -> None:
    done = on_machine("eighth", folder, "cache", *words)
    assert (done.returncode, sentence in done.stderr, done.stdout) == (2, True, "")


def test_a_damaged_list_of_loaded_keys_costs_the_marks_alone(tmp_path: Path) -> None:
    for text in ("", "{", '{"a": 1}', "[1, null]", "\0"):
        (tmp_path / FILE_NAME).write_text(text)
        assert read_local_keys({"TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}) == []
