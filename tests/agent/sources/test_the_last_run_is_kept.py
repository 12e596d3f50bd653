"""The compilations of a run are kept for the next run: in a private, bounded file that is validated
when read."""

from __future__ import annotations

import stat
import zlib
from pathlib import Path

import pytest
from compilewatch.config import Config
from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.private_files import FolderError
from compilewatch.sources.inductor.cache_miss_reasons import CacheCapability, MissCauses
from compilewatch.sources.inductor.run_history import (
    MAX_GRAPHS,
    MAX_KEYS,
    MAX_SETTINGS,
    SUFFIX,
    DamagedHistory,
    Graph,
    Run,
    RunHistory,
)
from hypothesis import given
from hypothesis import strategies as st


def config(folder: Path, model: str = "ranker") -> Config:
    return Config(model, "file:/dev/null", spool=str(folder))


def graph(number: int, settings: str = "s1") -> Graph:
    return Graph(
        "job.py:step", False, f"key{number}", settings, {"gm": f"g{number}"}, {"torch": "2.13"}
    )


def run_of(*graphs: Graph) -> Run:
    run = Run({"torch": "2.13", "env OMP_NUM_THREADS": "af12"})
    for one in graphs:
        run.add(one, {"inductor_config[max_autotune]": one.settings})
        run.add_key(one.key)
    return run


def test_a_run_is_read_back_unchanged(tmp_path: Path) -> None:
    kept = RunHistory.open(config(tmp_path))
    assert kept.read() is None
    run = run_of(graph(1), graph(2, "s2"))
    kept.write(run)
    assert kept.read() == run
    assert RunHistory.open(config(tmp_path, "another model")).read() is None


def test_the_file_is_private_to_the_user(tmp_path: Path) -> None:
    RunHistory.open(config(tmp_path)).write(run_of(graph(1)))
    (path,) = tmp_path.glob(f"compilewatch-*/runs/*{SUFFIX}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert b"max_autotune" not in path.read_bytes()


def test_a_later_run_adds_to_the_known_graphs(tmp_path: Path) -> None:
    kept = RunHistory.open(config(tmp_path))
    kept.write(run_of(graph(1)))
    later = run_of(graph(2))
    later.components = {"torch": "2.14"}
    kept.write(later)
    known = kept.read()
    assert known is not None
    assert list(known.graphs) == ["key1", "key2"]
    assert known.components == {"torch": "2.14"}
    assert known.graphs["key1"].components == {"torch": "2.13"}


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_damaged_file_is_reported_and_replaced(tmp_path: Path, cut: int) -> None:
    kept = RunHistory.open(config(tmp_path))
    kept.write(run_of(graph(1)))
    (path,) = tmp_path.glob(f"compilewatch-*/runs/*{SUFFIX}")
    path.write_bytes(path.read_bytes()[:-cut])
    recorder = Recorder()
    causes, source = MissCauses.of(recorder), CacheCapability()
    causes.open_history(config(tmp_path))
    assert source.install(recorder) == (
        "partly",
        "no causes of misses: the history file of the last run was damaged and was removed",
    )
    kept.write(run_of(graph(2)))
    known = kept.read()
    assert known is not None
    assert list(known.graphs) == ["key2"]
    causes.open_history(config(tmp_path))
    assert source.poll(recorder) == ("yes", "")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"[2,[],[],{},[]]",
        b'[1,[{}],[["f",false,"k","s",{},7]],{},[]]',
        b'[1,[{}],{"a":1},{},[]]',
        b"{",
    ],
)
def test_no_text_in_the_file_raises_anything_else(tmp_path: Path, text: bytes) -> None:
    kept = RunHistory.open(config(tmp_path))
    kept.write(run_of(graph(1)))
    (path,) = tmp_path.glob(f"compilewatch-*/runs/*{SUFFIX}")
    path.write_bytes(zlib.compress(text))
    with pytest.raises(DamagedHistory):
        kept.read()
    assert not path.exists()


def test_a_folder_that_is_switched_off_keeps_nothing(tmp_path: Path) -> None:
    with pytest.raises(FolderError):
        RunHistory.open(Config("ranker", "file:/dev/null", spool="off"))
    recorder = Recorder()
    MissCauses.of(recorder).open_history(Config("ranker", "file:/dev/null", spool="off"))
    answer, why = CacheCapability().install(recorder)
    assert (answer, why.endswith("COMPILEWATCH_SPOOL is off")) == ("partly", True)


@given(
    st.lists(
        st.tuples(st.integers(0, 2 * MAX_GRAPHS), st.integers(0, 2 * MAX_SETTINGS)), max_size=60
    )
)
def test_for_any_amount_added_the_newest_is_kept_and_the_bounds_hold(
    graphs: list[tuple[int, int]],
) -> None:
    known = Run()
    for number, settings in graphs:
        known.merge(run_of(graph(number, f"s{settings}")))
    assert len(known.graphs) <= MAX_GRAPHS
    assert len(known.settings) <= MAX_SETTINGS
    assert set(known.settings) == {one.settings for one in known.graphs.values()}
    if graphs:
        assert list(known.graphs)[-1] == f"key{graphs[-1][0]}"


def test_a_run_of_very_many_graphs_keeps_the_newest(tmp_path: Path) -> None:
    kept = RunHistory.open(config(tmp_path))
    kept.write(run_of(*(graph(number) for number in range(2 * MAX_KEYS))))
    known = kept.read()
    assert known is not None
    assert (len(known.graphs), len(known.keys)) == (MAX_GRAPHS, MAX_KEYS)
    assert f"key{2 * MAX_KEYS - 1}" in known.graphs
