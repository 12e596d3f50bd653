"""The log lines of vLLM 0.32 on a CPU (tests/data/vllm) are replayed on its loggers: a load is a
cache hit with vLLM's seconds, a failed load a finding with vLLM's reason, and a miss has the first
factor of vLLM's own key that differs."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from compilewatch.config import Config
from compilewatch.identity.compile_config import components
from compilewatch.identity.vllm_cache_key import (
    FACTORS_FILE,
    VLLM_KEY,
    VllmKey,
    hash_factors,
    vllm_key_of,
)
from compilewatch.recording.recorder import Recorder
from compilewatch.sources.inductor.cache_lookups import CacheAnswers, Lookup
from compilewatch.sources.inductor.cache_miss_reasons import MissCauses
from compilewatch.sources.inductor.run_history import RunHistory
from compilewatch.sources.log_filter import LogListener
from compilewatch.wire.cache_miss_causes import (
    EMPTY_FOLDER,
    ENGINE_CAUSE,
    NO_EARLIER_RUN,
    OTHER_FOLDER,
)
from compilewatch.wire.messages import Compile, Report

from tests.agent.sources.conftest import Seen, found
from tests.architecture.tree import REPOSITORY

DATA = REPOSITORY / "tests/data/vllm"
LINE = re.compile(
    r"^\(\S+ pid=\d+\) (?P<level>INFO|WARNING) \S+ \S+ \[(?P<module>\w+)\.py:\d+\] (?P<text>.*)$"
)
CONFIG_DIFFERS = (
    f"{ENGINE_CAUSE}config_hash (an option of the engine, or the model's configuration)"
)
GRAPH = "f" + "a" * 50


@pytest.fixture(autouse=True)
def key_of_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VLLM_KEY, "parts", {})
    monkeypatch.setattr(VLLM_KEY, "load_failed", False)


@pytest.fixture
def vllm() -> Iterator[Seen]:
    seen = Seen(here=("vllm_loads",))
    yield seen
    seen.uninstall()


def replay(log: str, root: str = "/cache/vllm") -> None:
    for line in (DATA / log).read_text().splitlines():
        if read := LINE.match(line):
            logger = logging.getLogger(f"vllm.compilation.{read['module']}")
            logger.log(
                getattr(logging, read["level"]), "%s", read["text"].replace("/cache/vllm", root)
            )


def test_a_warm_start_is_a_cache_hit_with_the_seconds_of_vllm(vllm: Seen) -> None:
    replay("startup_b2_warm.log")
    (load,) = vllm.compiles()
    assert "torch.compile took 2.08 s in total" in (DATA / "startup_b2_warm.log").read_text()
    assert load.seconds == {"total": 2.08, "cache_load": 2.08} and load.cache == {"aot": "hit"}
    assert (load.kind, load.outcome, load.key) == ("first", "ok", "43c169538b1433d3")


@pytest.mark.parametrize(
    "log", ["startup_a1_cold.log", "startup_b1_cold.log", "startup_b3_changed.log"]
)
def test_a_start_that_compiles_is_no_hit(vllm: Seen, log: str) -> None:
    replay(log)
    report = vllm.look()
    assert not report.compiles and not report.findings, "torch reports the compilations"


def test_a_load_that_failed_is_a_finding_with_the_reason_of_vllm(vllm: Seen) -> None:
    replay("startup_a2_warm.log")
    report = vllm.look()
    (failed,) = found(report, "aot_load_failed")
    assert (
        "'function' object has no attribute 'finalize_loading'"
        in (DATA / "startup_a2_warm.log").read_text()
    )
    assert (
        failed.text.endswith("'function' object has no attribute 'finalize_loading'")
        and not report.compiles
    )


def test_a_load_without_seconds_is_a_hit_of_unknown_length(vllm: Seen) -> None:
    logging.getLogger("vllm.compilation.decorators").info(
        "Directly load AOT compilation from path %s", "/c/torch_aot_compile/ab12/rank_0_0/m"
    )
    (load,) = vllm.compiles()
    assert load.seconds == {} and load.cache == {"aot": "hit"} and load.key == "ab12"


@pytest.mark.parametrize(
    ("logger", "said", "reason"),
    [
        (
            "decorators",
            "Cannot load aot compilation from path /c/model, error: Source code has changed",
            "Source code has changed",
        ),
        (
            "decorators",
            "Compiling model again due to a load failure from /c/m, reason: Compile cache "
            "file corrupted.",
            "file corrupted.",
        ),
        (
            "decorators",
            "[eagle_head] Compiling model again due to a load failure from /c/m, reason: "
            "two\nlines",
            "two lines",
        ),
    ],
    ids=["an older release", "a damaged file", "another part of the model, two lines"],
)
def test_failed_loads_of_other_kinds(vllm: Seen, logger: str, said: str, reason: str) -> None:
    logging.getLogger(f"vllm.compilation.{logger}").warning(said)
    (failed,) = found(vllm.look(), "aot_load_failed")
    assert failed.text.endswith(reason)


def test_two_parts_of_a_model_have_their_own_seconds(vllm: Seen) -> None:
    decorators, monitor = (
        logging.getLogger(f"vllm.compilation.{name}") for name in ("decorators", "monitor")
    )
    for tag, seconds in (("backbone", 2.0), ("eagle_head", 0.5)):
        decorators.info(
            "%sDirectly load AOT compilation from path %s",
            f"[{tag}] ",
            f"/c/torch_aot_compile/{tag}/m",
        )
        monitor.info("%storch.compile took %.2f s in total", f"[{tag}] ", seconds)
    monitor.info("%storch.compile took %.2f s in total", "[backbone] ", 9.0)
    assert [load.seconds["total"] for load in vllm.compiles()] == [2.0, 0.5]


def test_lines_that_vllm_does_not_print_are_read_and_stay_unprinted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logger = logging.getLogger("vllm.compilation.decorators")
    logger.setLevel(logging.ERROR)
    seen = Seen(here=("vllm_loads",))
    try:
        replay("startup_b2_warm.log")
        assert len(seen.compiles()) == 1
        assert not [record for record in caplog.records if record.name == logger.name]
    finally:
        seen.uninstall()
        assert logger.level == logging.ERROR and not logger.filters
        logger.setLevel(logging.NOTSET)


def test_no_value_of_a_factor_is_kept_and_each_variable_has_a_hash() -> None:
    hashed = hash_factors(
        {
            "config_hash": "aed0cd3b15",
            "env": {"VLLM_API_KEY": "secret-7", "VLLM_PORT": None},
            "code": ["a.py"],
        }
    )
    assert set(hashed) == {
        "vllm config_hash",
        "vllm env",
        "vllm env VLLM_API_KEY",
        "vllm env VLLM_PORT",
        "vllm code",
    }
    assert not any("secret" in value or "aed0" in value for value in hashed.values())
    assert hash_factors(["of another release"]) == {}


@pytest.mark.parametrize(
    ("folder", "key"),
    [
        ("/c/vllm/torch_compile_cache/a0d9701c77/rank_0_0/inductor_cache", "a0d9701c77"),
        ("/c/vllm/torch_compile_cache/torch_aot_compile/43c169538b/inductor_cache", "43c169538b"),
        ("/c/vllm/torch_compile_cache/a0d9701c77/rank_3_1/triton_cache/", "a0d9701c77"),
        ("/var/cache/inductor", ""),
        ("/tmp/torchinductor_me", ""),
        ("", ""),
    ],
)
def test_a_folder_that_vllm_derives_is_known_by_its_path(folder: str, key: str) -> None:
    assert vllm_key_of(folder) == key


class Start:
    """Consecutive starts of vLLM on one host, each a process of its own."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self._patch = root, monkeypatch

    def folder(self, key: str) -> Path:
        return self.root / "torch_compile_cache" / key

    def factors(self, key: str, content: dict[str, object] | str, rank: str = "rank_0_0") -> None:
        """Writes the factors of the key, as vLLM does, next to the compiled code."""
        folder = self.folder(key) / rank / "backbone"
        folder.mkdir(parents=True)
        (folder / FACTORS_FILE).write_text(
            (DATA / content).read_text() if isinstance(content, str) else json.dumps(content)
        )

    def cause(
        self, key: str, then: Callable[[], None] = lambda: None, rank: str = "rank_0_0"
    ) -> str:
        """The cause of the miss of the first graph of a start; `then` logs vLLM's earlier lines."""
        self._patch.setattr(VLLM_KEY, "parts", {})
        self._patch.setattr(VLLM_KEY, "load_failed", False)
        self._patch.setitem(
            os.environ, "TORCHINDUCTOR_CACHE_DIR", str(self.folder(key) / rank / "inductor_cache")
        )
        recorder = Recorder()
        recorder.start()
        causes = MissCauses.of(recorder)
        causes.open_history(Config("chat", "file:/dev/null", spool=str(self.root / "spool")))
        then()
        compiled = Compile(0.0, "0/0", "first", "ok", frame="forward", file="llama.py")
        causes.queue(
            compiled,
            CacheAnswers({"fx": "miss"}, [Lookup("fx", "miss", GRAPH)]),
            "llama.py:1 in forward",
        )
        causes.explain_queued()
        report: Report = recorder.rotate(1, 0.0, 1.0)
        assert recorder.internal_error_count == 0 and not causes.problem, (
            recorder.last_error,
            causes.problem,
        )
        assert [finding.text for finding in found(report, "cache_miss")] == [compiled.miss]
        return compiled.miss


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vllm: Seen) -> Start:
    return Start(tmp_path, monkeypatch)


def test_only_max_num_batched_tokens_changed(start: Start) -> None:
    start.factors("a0d9701c77", "cache_key_factors.json")
    start.factors("8d84dac534", "cache_key_factors_changed.json")
    assert (
        start.cause("a0d9701c77", lambda: replay("startup_b1_cold.log", str(start.root)))
        == NO_EARLIER_RUN
    )
    assert (
        start.cause("8d84dac534", lambda: replay("startup_b3_changed.log", str(start.root)))
        == CONFIG_DIFFERS
    )


def logged(start: Start, key: str, rank: str = "rank_0_0") -> Callable[[], None]:
    folder = start.folder(key) / rank / "backbone"
    return lambda: logging.getLogger("vllm.compilation.backends").info(
        "Using cache directory: %s for vLLM's torch.compile", folder
    )


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"env": {"VLLM_A": "2", "VLLM_B": ""}, "config_hash": "z"}, "env VLLM_A"),
        ({"env": {"VLLM_A": "1", "VLLM_B": "", "VLLM_C": "1"}}, "env VLLM_C"),
        ({"code_hash": "z", "compiler_hash": "z"}, "code_hash (source files of the model)"),
        ({"compiler_hash": "z"}, "compiler_hash (torch, options of inductor, or the machine)"),
        ({"lora_hash": "z"}, "key (another one than before, which factor differs is not known)"),
    ],
    ids=[
        "a variable, before what follows from it",
        "a variable that was not set",
        "the code",
        "the compiler",
        "a factor of another release",
    ],
)
def test_the_first_factor_that_differs_is_the_cause(
    start: Start, changed: dict[str, object], cause: str
) -> None:
    before = {
        "env": {"VLLM_A": "1", "VLLM_B": ""},
        "config_hash": "c",
        "code_hash": "d",
        "compiler_hash": "e",
    }
    start.factors("one", before)
    start.factors("two", {**before, **changed})
    start.cause("one", logged(start, "one"))
    assert start.cause("two", logged(start, "two")) == ENGINE_CAUSE + cause


def test_another_rank_is_compared_with_its_own_last_start(start: Start) -> None:
    for rank, config in (("rank_0_0", "c0"), ("rank_1_0", "c1")):
        start.factors("one", {"config_hash": config, "code_hash": "d"}, rank)
        start.cause("one", logged(start, "one", rank), rank)
    assert start.cause("one", logged(start, "one"), "rank_0_0") == EMPTY_FOLDER, (
        "the key is the same, its folder was emptied"
    )


def test_without_factors_the_key_alone_differs_and_no_folder_is_blamed(start: Start) -> None:
    start.cause("one")
    assert (
        start.cause("two")
        == f"{ENGINE_CAUSE}key (another one than before, which factor differs is not known)"
    )
    assert "cache folder" not in components()


def test_code_that_could_not_be_loaded_is_compiled_again_for_that_cause(start: Start) -> None:
    start.cause("one")
    assert (
        start.cause("one", lambda: replay("startup_a2_warm.log"))
        == "vLLM could not load the AOT compilation that it had kept"
    )


def test_a_chosen_folder_is_blamed_as_before(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        start.folder = lambda key: start.root / "chosen" / key / "x"  # type: ignore[method-assign]
        monkeypatch.setattr(Start, "rank", "", raising=False)
        cause = start.cause(name, rank="plain")
    assert cause == OTHER_FOLDER


def test_the_factors_of_all_ranks_are_kept_in_the_file(start: Start) -> None:
    for rank in ("rank_0_0", "rank_1_0"):
        start.factors("one", {"config_hash": rank}, rank)
        start.cause("one", logged(start, "one", rank), rank)
    run = RunHistory.open(Config("chat", "file:/dev/null", spool=str(start.root / "spool"))).read()
    assert run is not None and set(run.engine) == {"rank_0_0/backbone", "rank_1_0/backbone"}


def test_factors_that_vllm_writes_after_its_line_are_read_later(tmp_path: Path) -> None:
    key = VllmKey()
    key.note(str(tmp_path))
    assert key.read() == {}
    (tmp_path / FACTORS_FILE).write_text("[" * 100_000)
    assert key.read() == {}
    (tmp_path / FACTORS_FILE).write_text((DATA / "cache_key_factors.json").read_text())
    assert [bool(factors) for factors in key.read().values()] == [True]


def test_a_level_that_the_job_sets_later_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("engine.of.a.test")
    logger.parent.setLevel(logging.WARNING)  # type: ignore[union-attr]
    heard: list[str] = []
    lines = LogListener(logger.name, lambda record: heard.append(record.getMessage()), Recorder())
    logger.info("quiet")
    logger.setLevel(logging.INFO)
    logger.info("wanted")
    lines.remove()
    assert heard == ["quiet", "wanted"]
    assert [record.getMessage() for record in caplog.records] == ["wanted"]
    assert logger.level == logging.INFO
