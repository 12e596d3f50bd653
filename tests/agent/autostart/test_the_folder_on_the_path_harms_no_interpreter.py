"""The folder that `compilewatch run` puts on PYTHONPATH changes nothing for an unsupported
interpreter or for a process that runs no model."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.agent.autostart.jobs import calls_of_processes, folder_with_torch, run_below
from tests.agent.pythons import AGENT, PYTHONS
from tests.agent.server import Dashboard

FILE = AGENT / "compilewatch/autostart/sitecustomize.py"
LOADED = (
    "import json, sys; print(json.dumps([name for name in sys.modules if "
    "name.startswith('compilewatch')]))"
)
NEXT = "import sys\nprint('next', __name__, __file__)\nclass Kept: pass\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return folder_with_torch(tmp_path)


def test_any_python_3_can_parse_it() -> None:
    for minor in range(sys.version_info.minor + 1):
        ast.parse(FILE.read_text(), feature_version=(3, minor))
    kinds = {type(node) for node in ast.walk(ast.parse(FILE.read_text()))}
    assert not kinds & {
        ast.JoinedStr,
        ast.NamedExpr,
        ast.AnnAssign,
        ast.AsyncFunctionDef,
        ast.Await,
        ast.Match,
    }


def test_it_does_nothing_in_a_python_that_is_too_old() -> None:
    program = (
        "import sys\nsys.version_info = (3, 4, 0)\ndel sys.orig_argv\nhooks = list(sys.meta_path)\n"
        f"import runpy; runpy.run_path({str(FILE)!r})\nassert sys.meta_path == hooks"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS)
def test_nothing_of_the_agent_is_loaded_before_it_is_needed(
    folder: Path, dashboard: Dashboard, python: str
) -> None:
    done = run_below(folder, dashboard.endpoint, python, "-c", f"import json, ssl\n{LOADED}")
    assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, [], "")
    found = run_below(
        folder,
        dashboard.endpoint,
        python,
        "-c",
        "import importlib.util as u; u.find_spec('torch'); " + LOADED,
    )
    assert (found.returncode, json.loads(found.stdout), found.stderr) == (0, [], "")
    assert dashboard.requests == []
    used = run_below(folder, dashboard.endpoint, python, "-c", "import work; work.work()")
    assert (used.returncode, used.stderr) == (0, "")
    assert sorted(calls_of_processes(dashboard).values()) == [5]


LIBRARY_ALONE = """
import os, sys
os.environ["PYTHONPATH"] = os.pathsep.join(path for path in os.environ["PYTHONPATH"].split(os.pathsep) if path != sys.argv[1])
os.execv(sys.argv[2], sys.argv[2:])
"""


def test_an_interpreter_without_the_agent_is_left_alone_with_one_line(
    folder: Path, dashboard: Dashboard
) -> None:
    venv.create(folder / "other", with_pip=False)
    other = str(folder / "other/bin/python")
    (folder / "alone.py").write_text(LIBRARY_ALONE)
    program = (
        "import os, subprocess, sys, work; work.work(); print('worked', flush=True)\n"
        "if len(sys.argv) == 1: subprocess.run([sys.executable, '-c', sys.orig_argv[2], "
        "'child'], check=True)"
    )
    done = run_below(
        folder, dashboard.endpoint, "python", "alone.py", str(AGENT), other, "-c", program
    )
    assert (done.returncode, done.stdout) == (0, "worked\nworked\n")
    assert (
        done.stderr == f"compilewatch: off: {other} has no compilewatch of this release; install "
        "compilewatch there\n"
    )
    assert dashboard.requests == []
    silent = run_below(
        folder, dashboard.endpoint, "python", "alone.py", str(AGENT), other, "-c", LOADED
    )
    assert (silent.stdout, silent.stderr) == ("[]\n", "")


def test_the_next_sitecustomize_runs_as_without_the_folder(
    folder: Path, dashboard: Dashboard
) -> None:
    (folder / "library/sitecustomize.py").write_text(NEXT)
    program = "import sitecustomize, work; sitecustomize.Kept; work.work()"
    done = run_below(folder, dashboard.endpoint, "python", "-c", program)
    # The launcher is a Python process too.
    assert done.stdout == f"next sitecustomize {folder}/library/sitecustomize.py\n" * 2
    assert (done.returncode, done.stderr, sorted(calls_of_processes(dashboard).values())) == (
        0,
        "",
        [5],
    )


CHAINS = """
import os, sys
print("chains")
here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [path for path in sys.path if path != here]
ours = sys.modules.pop("sitecustomize")
try:
    import sitecustomize
except ImportError:
    sys.modules["sitecustomize"] = ours
sys.path.insert(0, here)
"""


@pytest.mark.parametrize("first", [True, False], ids=["its folder first", "its folder last"])
def test_a_sitecustomize_that_runs_the_next_one_runs_once(
    folder: Path, dashboard: Dashboard, first: bool
) -> None:
    """Tracers such as ddtrace start this way."""
    (folder / "tracer").mkdir()
    (folder / "tracer/sitecustomize.py").write_text(CHAINS)
    (folder / "library/sitecustomize.py").write_text("print('next')\n")
    add = "$PWD/tracer:$PYTHONPATH" if first else "${PYTHONPATH%%:*}:$PWD/tracer:${PYTHONPATH#*:}"
    done = run_below(
        folder,
        dashboard.endpoint,
        "bash",
        "-c",
        f'PYTHONPATH="{add}" python -c "import work; work.work()"',
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split()[1:] == ["chains", "next"]
    assert sorted(calls_of_processes(dashboard).values()) == [5]


def test_an_error_of_the_next_sitecustomize_is_reported_as_without_the_folder(
    folder: Path, dashboard: Dashboard
) -> None:
    (folder / "library/sitecustomize.py").write_text(
        "import sys\nif sys.orig_argv[-1] == 'fails': 1 / 0\n"
    )
    done = run_below(
        folder, dashboard.endpoint, "python", "-c", "import work; work.work()", "fails"
    )
    path = f"{AGENT}{os.pathsep}{folder / 'library'}"
    plain = [sys.executable, "-c", "pass", "fails"]
    expected = subprocess.run(
        plain, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    ).stderr
    assert "ZeroDivisionError" in expected and done.stderr.endswith(expected)
    assert sorted(calls_of_processes(dashboard).values()) == [5]


def test_a_torch_that_fails_or_is_missing_raises_its_own_error(
    folder: Path, dashboard: Dashboard
) -> None:
    for text, error in (
        ("1 / 0", "ZeroDivisionError"),
        ("raise ImportError('no CUDA')", "ImportError: no CUDA"),
    ):
        (folder / "library/torch.py").write_text(text)
        done = run_below(folder, dashboard.endpoint, "python", "-c", "import torch")
        assert done.returncode == 1 and error in done.stderr.splitlines()[-1]
    missing = run_below(
        folder,
        dashboard.endpoint,
        "python",
        "-c",
        "import sys; sys.modules['torch'] = None; import torch",
    )
    assert missing.returncode == 1 and "ModuleNotFoundError" in missing.stderr


LEFT_ALONE = [
    "python /venv/lib/python3.11/site-packages/torch/_inductor/compile_worker/__main__.py "
    "--workers=2",
    "python -m torch._inductor.compile_worker",
    "python -u -m torch.distributed.run --nproc-per-node 2 train.py",
    "python -Im pip install x",
    "python /venv/bin/pip3.11 install x",
    "python -W ignore -X dev -m compilewatch doctor",
    "/venv/bin/python3 /venv/bin/torchrun train.py",
    "python /venv/bin/accelerate launch train.py",
    "python /venv/bin/accelerate-launch train.py",
    "python -c|from multiprocessing.resource_tracker import main;main(5)",
    "python -B -c|from multiprocessing.resource_tracker import main;main(5)",
    "python -cfrom|multiprocessing.resource_tracker import main;main(5)",
    "python setup.py build_ext",
]
WATCHED = [
    "python",
    "python -",
    "python -i",
    "python train.py torchrun -m pip",
    "python -m train pip",
    "python -m torchrunner",
    "python -m piper",
    "python -m ipykernel_launcher -f x.json",
    "python /venv/bin/uvicorn serve:app --workers 2",
    "python /jobs/compilewatch_job.py",
    "python -X dev -Wignore --check-hash-based-pycs always train.py",
    "python -X",
    "python -c|from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5) "
    "--multiprocessing-fork",
    "python -c|from multiprocessing.forkserver import main; main(3)",
    "python -c|import torch; print('resource_tracker')",
]


def test_processes_that_run_no_model_are_left_alone() -> None:
    program = (
        f"import json, runpy, sys; known = runpy.run_path({str(FILE)!r})\n"
        "print(json.dumps([known['is_left_alone'](words) for words in json.load(sys.stdin)]))"
    )
    words = [
        [*line.partition("|")[0].split(), *filter(None, [line.partition("|")[2]])]
        for line in LEFT_ALONE + WATCHED
    ]
    joined = [
        ["python", "-cfrom multiprocessing.resource_tracker import main"]
        if "-cfrom" in one
        else one
        for one in words
    ]
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(joined),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = dict(zip(LEFT_ALONE + WATCHED, json.loads(done.stdout), strict=True))
    assert [line for line, left in answers.items() if left] == LEFT_ALONE


def test_a_tool_below_a_command_reports_nothing(folder: Path, dashboard: Dashboard) -> None:
    (folder / "setup.py").write_text("import work; work.work()")
    done = run_below(
        folder,
        dashboard.endpoint,
        "bash",
        "-c",
        "python setup.py build; python -m compilewatch version; python -m pip --version",
    )
    assert (done.returncode, done.stderr, dashboard.requests) == (0, "", [])
