"""A missing or wrong setting is one line on stderr; the agent is off, the job continues, and
nothing is wrapped."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import compilewatch
import pytest
from compilewatch.config import load
from compilewatch.errors import ConfigError
from compilewatch.recording.recorder import RECORDER

GOOD = {"model": "ranker", "endpoint": "https://watch.example", "api_key": "cw_ing_x"}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"endpoint": None},
            "off: no endpoint; pass init(endpoint=...) or set COMPILEWATCH_ENDPOINT",
        ),
        ({"api_key": None}, "off: no key; pass init(api_key=...) or set COMPILEWATCH_API_KEY"),
        ({"model": ""}, "off: no model name; pass init(model=...) or set COMPILEWATCH_MODEL"),
        ({"model": 3}, "off: init(model=...) must be text, got int"),
        ({"node": 7}, "off: init(node=...) must be text, got int"),
        ({"node": "n" * 600}, "off: init(node=...) is longer than 512 characters"),
        ({"model": "m" * 600}, "off: init(model=...) is longer than 512 characters"),
        (
            {"endpoint": "watch.example"},
            "off: the endpoint must be http(s)://host[:port], the same after otlp:, or "
            "file:PATH, got 'watch.example'",
        ),
        ({"endpoint": "http://[::1"}, "off: the endpoint 'http://[::1' is not an address"),
        (
            {"endpoint": "file:"},
            "off: the endpoint file: needs a path, as in file:/tmp/reports.jsonl",
        ),
        (
            {"endpoint": "otlp:collector:4318"},
            "off: the endpoint must be http(s)://host[:port], the same after otlp:, or file:PATH",
        ),
        ({"endpoint": "otlp:http://watch.example"}, "off: the key would be sent over plain http"),
        ({"endpoint": "http://watch.example"}, "off: the key would be sent over plain http"),
        (
            {"endpoint": "https://u:p@watch.example"},
            "off: the endpoint must not hold a user, a query or a fragment",
        ),
        ({"api_key": "two words"}, "off: the key contains invalid characters"),
        ({"api_key": "line\r\nbreak"}, "off: the key contains invalid characters"),
        ({"interval": "soon"}, "off: init(interval=...) must be a number of seconds, got 'soon'"),
        ({"interval": 0}, "off: init(interval=...) must be between 0.05 and 300 seconds, got 0.0"),
        (
            {"interval": float("nan")},
            "off: init(interval=...) must be between 0.05 and 300 seconds, got nan",
        ),
        ({"kind": "batch"}, "off: kind must be serving or training, got 'batch'"),
        ({"allow_http": "perhaps"}, "off: init(allow_http=...) must be 1 or 0, got 'perhaps'"),
        ({"spool": "here"}, "off: COMPILEWATCH_SPOOL must be off or an absolute path, got 'here'"),
        (
            {"proxy": "https://p.example:1"},
            "off: COMPILEWATCH_PROXY must be http://[user:password@]host:port",
        ),
        (
            {"proxy": "http://ada:secret@p.example"},
            "off: COMPILEWATCH_PROXY must be http://[user:password@]host:port\n",
        ),
        (
            {"endpoint": "http://localhost:1", "proxy": "http://p.example:1"},
            "off: the key would be sent over plain http",
        ),
        ({"endpiont": "x"}, "off: init() has no setting 'endpiont'"),
    ],
)
def test_a_wrong_setting_is_logged_in_one_line_and_the_agent_is_off(
    change: dict[str, Any], sentence: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert compilewatch.init(**{**GOOD, **change}) is False
    said = capfd.readouterr().err
    assert said.startswith(f"compilewatch: {sentence}")
    assert said.count("\n") == 1

    def job() -> int:
        return 7

    assert compilewatch.watch(job) is job
    assert RECORDER.buffers is None
    with compilewatch.region("step"):
        assert job() == 7
    compilewatch.ready()
    compilewatch.mark("x")
    compilewatch.shutdown()


SECRET = "cw_ing_abcdefgh_verysecret"
NAMES = "off: the file named by COMPILEWATCH_API_KEY_FILE"


@pytest.fixture
def key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The key in a file that a variable names; the other settings are given."""
    file = tmp_path / "key"
    file.write_text(f"\n {SECRET}\r\n")
    monkeypatch.delenv("COMPILEWATCH_API_KEY", raising=False)
    monkeypatch.setenv("COMPILEWATCH_API_KEY_FILE", str(file))
    return file


def keyless(**settings: Any) -> bool:
    return compilewatch.init(**{**GOOD, "api_key": None, **settings})


def test_a_key_is_read_from_a_file(key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load({**GOOD, "api_key": None})
    assert config.api_key == SECRET and SECRET not in repr(config)
    assert load(GOOD).api_key == "cw_ing_x", "a setting of the call overrides every variable"
    monkeypatch.setenv("COMPILEWATCH_API_KEY", "cw_ing_other")
    assert load({**GOOD, "api_key": None, "api_key_file": str(key_file)}).api_key == SECRET
    monkeypatch.setenv("COMPILEWATCH_API_KEY", "")
    assert load({**GOOD, "api_key": None}).api_key == SECRET, "an empty variable is not set"


def test_the_key_that_verifies_commands_is_read_from_a_file(tmp_path: Path) -> None:
    text = f"cw_cmd_abcdefgh_{'x' * 43}"
    (tmp_path / "key").write_text(text + "\n")
    found = load(
        {**GOOD, "allow_remote": "freeze"}, {"COMPILEWATCH_COMMAND_KEY_FILE": str(tmp_path / "key")}
    )
    assert found.command_key == text and text not in repr(found)
    with pytest.raises(
        Exception,
        match="off: COMPILEWATCH_COMMAND_KEY and COMPILEWATCH_COMMAND_KEY_FILE are both set",
    ):
        load(
            GOOD,
            {
                "COMPILEWATCH_COMMAND_KEY": text,
                "COMPILEWATCH_COMMAND_KEY_FILE": str(tmp_path / "key"),
            },
        )


PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
EXPECTED = (
    "off: COMPILEWATCH_COMMAND_PUBLIC_KEY must be the 64 hexadecimal digits that the Setup "
    "page shows, got"
)


def test_a_public_key_is_accepted_in_either_case_and_needs_no_other() -> None:
    found = load(
        {**GOOD, "allow_remote": "freeze"},
        {"COMPILEWATCH_COMMAND_PUBLIC_KEY": f" {PUBLIC.upper()}\n"},
    )
    assert (found.command_public_key, found.command_key) == (PUBLIC, "")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"cw_cmd_abcdefgh_{'x' * 49}", f"{EXPECTED} another text of 65 characters"),
        (PUBLIC[:-1], f"{EXPECTED} another text of 63 characters"),
        (PUBLIC + "00", f"{EXPECTED} another text of 66 characters"),
        ("g" * 64, f"{EXPECTED} another text of 64 characters"),
        ("٣" * 64, f"{EXPECTED} another text of 64 characters"),
        ("02" + "00" * 31, f"{EXPECTED} not a canonical encoding of a curve point"),
        ("ee" + "ff" * 30 + "7f", f"{EXPECTED} not a canonical encoding of a curve point"),
        (
            "01" + "00" * 31,
            f"{EXPECTED} a point of small order, for which anyone can create signatures",
        ),
        (
            "",
            "off: COMPILEWATCH_ALLOW_REMOTE needs the project's public key in "
            "COMPILEWATCH_COMMAND_PUBLIC_KEY",
        ),
    ],
)
def test_an_invalid_public_key_is_reported_in_one_sentence_without_its_text(
    text: str, sentence: str
) -> None:
    with pytest.raises(ConfigError) as error:
        load({**GOOD, "allow_remote": "freeze"}, {"COMPILEWATCH_COMMAND_PUBLIC_KEY": text})
    assert str(error.value) == sentence
    assert load(GOOD, {"COMPILEWATCH_COMMAND_PUBLIC_KEY": text}).allow_remote == (), (
        "a job that allows nothing needs no key"
    )


def test_a_wrong_public_key_does_not_fall_back_to_the_symmetric_key() -> None:
    keys = {
        "COMPILEWATCH_COMMAND_PUBLIC_KEY": PUBLIC[:-1],
        "COMPILEWATCH_COMMAND_KEY": f"cw_cmd_abcdefgh_{'x' * 43}",
    }
    with pytest.raises(ConfigError, match="got another text of 63 characters"):
        load({**GOOD, "allow_remote": "freeze"}, keys)


def gone(file: Path) -> None:
    file.unlink()


def a_pipe(file: Path) -> None:
    """Opening the pipe would wait for a writer that never comes."""
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (gone, f"{NAMES} cannot be read: No such file or directory"),
        (lambda file: (gone(file), file.mkdir()), f"{NAMES} cannot be read: not a regular file"),
        (a_pipe, f"{NAMES} cannot be read: not a regular file"),
        (lambda file: file.write_text(" \n"), f"{NAMES} is empty"),
        (
            lambda file: file.write_text(SECRET * 99),
            "off: the content of the file named by COMPILEWATCH_API_KEY_FILE is longer "
            "than 512 characters",
        ),
        (
            lambda file: file.write_text(f"{SECRET}\n{SECRET}"),
            "off: the key contains invalid characters",
        ),
        (
            lambda file: file.write_bytes(SECRET.encode("utf-16")),
            "off: the key contains invalid characters",
        ),
        (
            lambda file: os.environ.update(COMPILEWATCH_API_KEY=SECRET),
            "off: COMPILEWATCH_API_KEY and COMPILEWATCH_API_KEY_FILE are both set",
        ),
        (
            lambda file: os.environ.update(COMPILEWATCH_API_KEY_FILE=SECRET),
            f"{NAMES} cannot be read: No such file or directory",
        ),
    ],
    ids=[
        "none",
        "a folder",
        "a pipe",
        "empty",
        "long",
        "two lines",
        "utf-16",
        "both",
        "the key as the name",
    ],
)
def test_a_file_without_a_key_is_one_line_without_its_text(
    key_file: Path,
    spoil: Callable[[Path], object],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COMPILEWATCH_API_KEY", "")
    spoil(key_file)
    assert keyless() is False
    said = capfd.readouterr().err
    assert said.startswith(f"compilewatch: {sentence}") and said.count("\n") == 1
    assert "cw_ing" not in said and "verysecret" not in said and RECORDER.buffers is None


def test_an_impossible_name_and_a_file_of_another_user_are_one_line(
    key_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert keyless(api_key_file="a\0b") is False
    assert (
        capfd.readouterr().err
        == "compilewatch: off: the file named by init(api_key_file=...) cannot be read: the "
        "file name is invalid\n"
    )
    key_file.chmod(0)
    if not os.access(key_file, os.R_OK):  # root can read everything
        assert keyless() is False
        assert (
            capfd.readouterr().err == f"compilewatch: {NAMES} cannot be read: Permission denied\n"
        )


def test_a_wrong_variable_is_named() -> None:
    with pytest.raises(Exception, match="COMPILEWATCH_INTERVAL must be a number"):
        load({}, {"COMPILEWATCH_INTERVAL": "x"})


def test_settings_come_from_the_call_before_the_environment() -> None:
    environment = {
        "COMPILEWATCH_MODEL": "a",
        "COMPILEWATCH_ENDPOINT": "http://10.0.0.1",
        "COMPILEWATCH_API_KEY": "k",
        "COMPILEWATCH_ALLOW_HTTP": "1",
    }
    config = load({"model": "b"}, environment)
    assert (config.model, config.endpoint, config.allow_http, config.interval) == (
        "b",
        "http://10.0.0.1",
        True,
        10.0,
    )


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_loopback_may_be_plain_http(host: str) -> None:
    assert load({**GOOD, "endpoint": f"http://{host}:8000"}).endpoint == f"http://{host}:8000"


def test_a_running_agent_keeps_its_settings(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert compilewatch.init(model="ranker", endpoint="file:/dev/null", interval=300)
    try:
        assert compilewatch.init(model="ranker", endpoint="nowhere", api_key="x") is False
        said = capfd.readouterr().err
        assert said.startswith("compilewatch: the endpoint must be") and said.endswith(
            "; the agent continues with its earlier settings\n"
        )
        assert compilewatch.watch(abs, name="after")(-1) == 1
        assert RECORDER.rotate(1, 0.0, 1.0).regions[0].calls == 1
    finally:
        compilewatch.shutdown()
