"""`compilewatch cache-check` predicts the compile cache misses of a start and their cause, and the
start then misses for that cause."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from compilewatch.cache_cli.check import forecast_of
from compilewatch.sources.inductor.cache_key_parts import KeyParts
from compilewatch.sources.inductor.run_history import Graph, Run
from compilewatch.wire.messages import Compile

from tests.agent.programs import command
from tests.agent.recordings import compilations
from tests.machine import need

JOB = """
import torch

@torch.compile
def product(x):
    return (x @ x).relu().sum()

product(torch.ones(8, 8))
"""
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine on which the model ran once."""
    need("a C++ compiler")
    folder = tmp_path_factory.mktemp("machine")
    (folder / "serve.py").write_text(JOB)
    start(folder, "first.jsonl")
    return folder


def start(place: Path, recording: str, spool: str = "spool", **variables: str) -> list[Compile]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(place / "caches"))
        for name, value in variables.items():
            patch.setenv(name, value)
        settings = {
            "ENDPOINT": f"file:{place / recording}",
            "MODEL": "ranker",
            "SPOOL": str(place / spool),
        }
        done = command("run", "--", "python", "serve.py", folder=place, **settings)
    assert done.returncode == 0, done.stderr
    return compilations(place / recording)


def check(place: Path, *words: str, **variables: str) -> tuple[int, dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(place / "caches"))
        for name, value in variables.items():
            patch.setenv(name, value)
        done = command(
            "cache-check",
            "--model",
            "ranker",
            "--json",
            *words,
            folder=place,
            SPOOL=str(place / "spool"),
        )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_a_start_in_the_same_environment_is_warm(place: Path) -> None:
    code, outlook = check(place)
    assert (code, outlook["misses"], outlook["possible"]) == (0, [], [])
    assert outlook["entries"] == outlook["present"] == 2
    (compilation,) = start(place, "same.jsonl")
    assert compilation.cache == {"fx": "hit", "aot": "hit"}


def test_a_changed_variable_that_changes_an_option_is_named_and_the_start_misses_for_it(
    place: Path,
) -> None:
    code, outlook = check(
        place, TORCHINDUCTOR_EPILOGUE_FUSION="0", TORCHINDUCTOR_MAX_AUTOTUNE_GEMM="1"
    )
    assert (code, outlook["misses"]) == (
        1,
        ["inductor_config: max_autotune_gemm (env TORCHINDUCTOR_MAX_AUTOTUNE_GEMM)"],
    )
    assert outlook["possible"] == ["env TORCHINDUCTOR_EPILOGUE_FUSION"], (
        "torch does not know this one"
    )
    assert outlook["answer"] == f"will miss: {outlook['misses'][0]}"
    shutil.copytree(
        place / "spool", place / "other spool"
    )  # keep the first run as the last run for the other tests
    (compilation,) = start(
        place, "changed.jsonl", "other spool", TORCHINDUCTOR_MAX_AUTOTUNE_GEMM="1"
    )
    assert compilation.cache["fx"] == "miss"
    assert compilation.miss == "env TORCHINDUCTOR_MAX_AUTOTUNE_GEMM"


@pytest.mark.engines_only
def test_a_variable_set_to_the_default_is_no_certain_miss(place: Path) -> None:
    code, outlook = check(place, TORCHINDUCTOR_MAX_AUTOTUNE="0")
    assert (code, outlook["misses"], outlook["possible"]) == (
        0,
        [],
        ["env TORCHINDUCTOR_MAX_AUTOTUNE"],
    )


def test_a_folder_without_the_entries_of_earlier_runs_is_named(place: Path, tmp_path: Path) -> None:
    code, outlook = check(place, TORCHINDUCTOR_CACHE_DIR=str(tmp_path))
    assert code == 1
    (missed,) = outlook["misses"]
    assert missed.startswith(f"cache folder {tmp_path} holds none of the ")


@pytest.mark.engines_only
def test_people_read_lines_instead_of_json(place: Path) -> None:
    done = command("cache-check", "--model", "ranker", folder=place, SPOOL=str(place / "spool"))
    assert "compared with the last run of ranker on this machine" in done.stdout
    assert "not checked: the model's code" in done.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["cache-check"], "needs the name of the model"),
        (
            ["cache-check", "--model", "unknown"],
            "no earlier run of 'unknown' is known on this machine",
        ),
        (
            ["cache-check", "--file", "serve.py"],
            "serve.py is not a file of `compilewatch cache save`",
        ),
        (["cache-check", "--file", "nowhere"], "nowhere cannot be read: No such file or directory"),
    ],
)
def test_a_sentence_explains_why_nothing_can_be_compared(
    place: Path, words: list[str], sentence: str
) -> None:
    done = command(*words, folder=place, SPOOL=str(place / "spool"))
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


BEFORE = {"torch": "2.12.0", "triton": "3.5", "gpu": "NVIDIA H100"}
OWN = {"torch_version": "a", "system_info[hash]": "b", "gm": "c"}


def ran(**settings: str) -> Run:
    run = Run(components=dict(BEFORE))
    run.add(Graph("serve.py:forward", False, "fkey", "id", dict(OWN), dict(BEFORE)), settings)
    run.add_key("fkey")
    return run


def test_a_folder_that_cannot_be_written_may_make_every_start_miss(tmp_path: Path) -> None:
    said = (
        f"cache folder {tmp_path} is not writable: missing entries are compiled again at every "
        "start"
    )
    for access, possible in (
        ({"cache folder access": "read-only"}, [said]),
        ({"cache folder access": "read and write"}, []),
        ({}, []),
    ):
        assert (
            forecast_of("ranker", ran(), {**BEFORE, **access}, None, str(tmp_path)).possible
            == possible
        )


def test_versions_and_gpu_type_are_named_most_fundamental_first(tmp_path: Path) -> None:
    now = {"torch": "2.13.0", "triton": "3.6", "gpu": "NVIDIA H200"}
    outlook = forecast_of(
        "ranker", ran(), now, KeyParts("", {}, {**OWN, "torch_version": "other"}), str(tmp_path)
    )
    assert outlook.misses[:3] == [
        "torch 2.12.0 -> 2.13.0",
        "triton 3.5 -> 3.6",
        "gpu NVIDIA H100 -> NVIDIA H200",
    ]


def test_a_value_unknown_on_one_side_is_no_difference(tmp_path: Path) -> None:
    (tmp_path / "fxgraph" / "ke" / "fkey").mkdir(parents=True)
    (tmp_path / "fxgraph" / "ke" / "fkey" / "entry").touch()
    outlook = forecast_of(
        "ranker", ran(), {"torch": "2.12.0"}, KeyParts("", {}, dict(OWN)), str(tmp_path)
    )
    assert outlook.misses == []


def test_a_torch_of_the_same_name_and_other_sources_is_reported(tmp_path: Path) -> None:
    outlook = forecast_of(
        "ranker", ran(), BEFORE, KeyParts("", {}, {**OWN, "torch_version": "other"}), str(tmp_path)
    )
    assert outlook.misses[0] == "torch: the same version, built from other sources"


def test_an_option_that_code_set_is_not_predicted(tmp_path: Path) -> None:
    name, here = "inductor_config[max_autotune]", {"inductor_config[max_autotune]": "off"}
    parts = KeyParts("", here, dict(OWN))
    by_code = ran(**{name: "on"})
    by_code.components["inductor_config max_autotune"] = "hash"
    assert (
        "inductor_config: max_autotune"
        not in forecast_of("ranker", by_code, BEFORE, parts, str(tmp_path)).misses
    )
    assert (
        "inductor_config: max_autotune"
        in forecast_of("ranker", ran(**{name: "on"}), BEFORE, parts, str(tmp_path)).misses
    )


def test_a_torch_that_does_not_provide_its_options_is_reported(tmp_path: Path) -> None:
    outlook = forecast_of("ranker", ran(), BEFORE, None, str(tmp_path))
    assert "torch's options: this torch does not provide them" in outlook.unseen
