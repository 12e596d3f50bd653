"""A program under `compilewatch run` gets the same name, arguments, path, flags, main module and
end as under Python."""

from __future__ import annotations

import os
import py_compile
import signal
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.agent.programs import LIMIT, command, environment

PROBE = """
import json, sys
spec = globals().get("__spec__")
flags = {name: getattr(sys.flags, name) for name in ("optimize", "dev_mode", "utf8_mode", "isolated", "ignore_environment")}
print(json.dumps({
    "name": __name__, "file": globals().get("__file__"), "package": __package__, "spec": spec and spec.name,
    "argv": sys.argv, "path": sys.path[0], "flags": flags, "warnings": sys.warnoptions, "asserts": __debug__,
    "options": sorted(sys._xoptions), "main": sys.modules["__main__"].__dict__ is globals(), "buffered": sys.stdout.write_through,
}))
"""

AS_PYTHON = [
    ["probe.py"],
    ["probe.py", "--port", "1", "-u", "--", "-m"],
    ["./probe.py", "a b"],
    ["folder/probe.py"],
    ["-u", "probe.py", "x"],
    ["-O", "probe.py"],
    ["-uO", "probe.py"],
    ["-X", "dev", "-Wignore", "probe.py"],
    ["-Xutf8=1", "-W", "error::UserWarning", "-m", "package.part", "-x"],
    ["-m", "package", "a"],
    ["-mpackage.part"],
    ["-uc", "exec(open('probe.py').read())", "-c", "y"],
    ["application.zip", "z"],
    ["application", "z"],
    ["compiled.pyc"],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("programs")
    for name in (
        "probe.py",
        "folder/probe.py",
        "package/__init__.py",
        "package/__main__.py",
        "package/part.py",
        "application/__main__.py",
    ):
        file = root / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("" if name.endswith("__init__.py") else PROBE)
    with zipfile.ZipFile(root / "application.zip", "w") as archive:
        archive.writestr("__main__.py", PROBE)
    py_compile.compile(str(root / "probe.py"), str(root / "compiled.pyc"))
    script = root / "launcher"
    script.write_text(f"#!{sys.executable}\n{PROBE}")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return root


def plain(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def started(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return command(
        "run", "--model", "m", "--", *words, folder=folder, ENDPOINT=f"file:{folder / 'reports'}"
    )


@pytest.mark.parametrize("words", AS_PYTHON, ids=" ".join)
def test_the_program_cannot_detect_the_difference(words: list[str], folder: Path) -> None:
    expected, found = plain(words, folder), started(["python", *words], folder)
    assert (found.returncode, found.stdout) == (0, expected.stdout), found.stderr


def test_a_console_script_is_run(folder: Path) -> None:
    expected = plain([str(folder / "launcher"), "serve"], folder)
    path = f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"
    words = [sys.executable, "-m", "compilewatch", "run", "--", "launcher", "serve"]
    found = subprocess.run(
        words,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert (found.returncode, found.stdout) == (0, expected.stdout), found.stderr


def test_the_main_module_outlives_the_end_of_its_code(folder: Path) -> None:
    (folder / "late.py").write_text(
        "import atexit, pickle, threading, time\nclass Kept: pass\n"
        "def later():\n    time.sleep(0.2)\n    pickle.dumps(Kept())\n    print('thread')\n"
        "threading.Thread(target=later).start()\natexit.register(lambda: "
        "(pickle.dumps(Kept()), print('exit')))\n"
    )
    done = started(["late.py"], folder)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["thread", "exit"], "")


def test_spawned_children_find_their_main_module(folder: Path) -> None:
    (folder / "spawning.py").write_text(
        "import multiprocessing\ndef double(x): return 2 * x\n"
        "if __name__ == '__main__':\n    with multiprocessing.get_context('spawn').Pool(1) "
        "as pool:\n"
        "        print(pool.map(double, [1, 2]))\n"
    )
    done = started(["spawning.py"], folder)
    assert (done.returncode, done.stdout) == (0, "[2, 4]\n"), done.stderr


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("raise SystemExit(7)", 7),
        ("raise SystemExit('sorry')", 1),
        ("1 / 0", 1),
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("def", 1),
    ],
)
def test_the_end_of_the_program_is_the_end_of_the_command(
    body: str, status: int, folder: Path
) -> None:
    (folder / "ending.py").write_text(body)
    expected, found = plain(["ending.py"], folder), started(["ending.py"], folder)
    assert (found.returncode, expected.returncode) == (status, status)
    assert found.stderr.splitlines()[-1:] == expected.stderr.splitlines()[-1:]


def test_interpreter_options_apply_to_a_program_without_a_leading_python(
    folder: Path,
) -> None:
    """A launcher of another project starts workers as `python -u -m compilewatch run --
    train.py`."""
    for options in (["-u"], ["-X", "utf8=1", "-O"], ["-W", "ignore", "-uO"]):
        expected = plain([*options, "probe.py", "x"], folder)
        words = [sys.executable, *options, "-m", "compilewatch", "run", "--", "probe.py", "x"]
        found = subprocess.run(
            words,
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert (found.returncode, found.stdout) == (0, expected.stdout), found.stderr


def test_python_is_the_interpreter_of_the_launcher(folder: Path) -> None:
    """Even if another Python comes first on PATH."""
    (folder / "python").write_text("#!/bin/sh\nexit 9\n")
    (folder / "python").chmod(0o700)
    words = [
        sys.executable,
        "-m",
        "compilewatch",
        "run",
        "--",
        "python",
        "-c",
        "import sys; print(sys.executable)",
    ]
    env = {**environment(), "PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(
        words, env=env, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"{sys.executable}\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "run takes a command"),
        (["no-such-command"], "there is no command and no file 'no-such-command'"),
        (["./no-such.py"], "there is no command and no file './no-such.py'"),
        (["./broken"], "broken cannot be started: Exec format error"),
    ],
)
def test_an_unknown_command_is_reported_in_one_sentence(
    words: list[str], message: str, tmp_path: Path
) -> None:
    (tmp_path / "broken").write_text("no program")
    (tmp_path / "broken").chmod(0o700)
    done = command("run", "--", *words, folder=tmp_path)
    assert (done.returncode, message in done.stderr.splitlines()[-1]) == (2, True), done.stderr


def test_missing_settings_are_reported_once_and_the_command_runs(tmp_path: Path) -> None:
    (tmp_path / "serve.py").write_text("import sys, torch; print(__name__, sys.argv[1:])")
    (tmp_path / "torch.py").write_text("compile = None")
    done = command("run", "--", "python", "-m", "serve", "a", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "__main__ ['a']\n")
    assert (
        done.stderr
        == "compilewatch: off: no endpoint; pass init(endpoint=...) or set COMPILEWATCH_ENDPOINT\n"
    )
