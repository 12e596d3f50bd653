"""Each Python process below `compilewatch run` that imports torch reports, for every way to start
the command."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.agent.autostart.jobs import calls_of_processes, folder_with_torch, run_below, variables
from tests.agent.frameworks.services import Service, free_port
from tests.agent.pythons import AGENT
from tests.agent.server import Dashboard

WORK = "import work; work.work()"
CHILDREN = """
import multiprocessing, sys, work
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    processes = [context.Process(target=work.work) for _ in range(2)]
    [process.start() for process in processes]
    [process.join() for process in processes]
    assert [process.exitcode for process in processes] == [0, 0]
"""
FORKS = (
    "import os, work\nif os.fork() == 0:\n    work.work()\n    raise "
    "SystemExit\nos.wait()\nwork.work()"
)
POOL = (
    "import concurrent.futures as f, work\nwith f.ProcessPoolExecutor(1) as pool: "
    "pool.submit(work.work).result()\n"
)
COMMANDS = {
    "a file": (["python", "job.py"], 1),
    "a file without python": (["job.py"], 1),
    "a module without python": (["-m", "job"], 1),
    "code": (["python", "-c", WORK], 1),
    "code without python": (["-c", WORK], 1),
    "options": (["python", "-uX", "dev", "-Wignore", "-m", "job"], 1),
    "standard input": (["python", "-"], 1),
    "a shell": (["bash", "-c", "python job.py & python job.py; wait"], 2),
    "a shell script": (["./start.sh"], 2),
    "a console script": (["launch-job"], 1),
    "a run below": ([sys.executable, "-m", "compilewatch", "run", "--", "python", "job.py"], 1),
    "spawn": (["python", "children.py", "spawn"], 2),
    "forkserver": (["python", "children.py", "forkserver"], 2),
    "fork": (["python", "children.py", "fork"], 2),
    "a pool": (["python", "pool.py"], 1),
    "os.fork": (["python", "forks.py"], 2),
    "a program that starts the agent": (
        ["python", "-c", f"import compilewatch; compilewatch.init(version='2'); {WORK}"],
        1,
    ),
    "a program without torch": (
        [
            "python",
            "-c",
            "import compilewatch\nf = compilewatch.watch(lambda: None)\nfor _ in range(5): f()",
        ],
        1,
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = folder_with_torch(tmp_path)
    for name, text in (
        ("job.py", WORK),
        ("children.py", CHILDREN),
        ("forks.py", FORKS),
        ("pool.py", POOL),
    ):
        (place / name).write_text(text)
    (place / "start.sh").write_text("#!/bin/bash\nset -e\npython job.py\nexec python -m job\n")
    (place / "launch-job").write_text(f"#!{sys.executable}\n{WORK}")
    for name in ("start.sh", "launch-job"):
        (place / name).chmod(0o700)
    return place


@pytest.mark.parametrize(("words", "processes"), COMMANDS.values(), ids=COMMANDS)
def test_it_reports(folder: Path, dashboard: Dashboard, words: list[str], processes: int) -> None:
    done = run_below(folder, dashboard.endpoint, *words, given=WORK)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(calls_of_processes(dashboard).values()) == [5] * processes
    assert {request["instance"]["model"] for request in dashboard.requests} == {"m"}


PATHS = {
    "none": "",
    "an empty entry, which is the current folder": ":{library}",
    "an entry with spaces": "{library}:/no such folder",
    "the folder of the agent's start already": "{library}:{agent}/compilewatch/autostart",
}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_the_path_of_the_user_is_kept_and_needs_no_agent(
    folder: Path, dashboard: Dashboard, path: str
) -> None:
    """The interpreter that runs the launcher finds the agent through the folder alone."""
    for name in ("torch.py", "work.py"):
        (folder / name).write_text((folder / "library" / name).read_text())
    agent = str(AGENT)
    given = path.format(library=folder / "library", agent=agent)
    venv.create(folder / "bare", with_pip=False)
    program = f"import os; print(os.environ['PYTHONPATH']); {WORK}"
    start = (
        f"import sys; sys.path.insert(0, {agent!r}); import compilewatch.cli.main as m; "
        f"m.main(['run', '--', 'python', '-c', {program!r}])"
    )
    env = {**variables(folder, dashboard.endpoint), "PYTHONPATH": given}
    done = subprocess.run(
        [folder / "bare/bin/python", "-c", start],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert (done.returncode, done.stderr) == (0, "")
    ours = f"{agent}/compilewatch/autostart"
    others = [entry for entry in given.split(":") if entry != ours] if given else []
    assert done.stdout == ":".join([ours, *others]) + "\n"
    assert sorted(calls_of_processes(dashboard).values()) == [5]


@pytest.mark.parametrize(
    "other",
    [
        {"PYTHONSAFEPATH": "1"},
        {"PYTHONFROZENMODULES": "off"},
        {"PYTHONOPTIMIZE": "2"},
        {"PYTHONWARNINGS": "error"},
    ],
    ids=str,
)
def test_python_settings_keep_the_agent_on(
    folder: Path, dashboard: Dashboard, other: dict[str, str]
) -> None:
    done = run_below(
        folder, dashboard.endpoint, "python", "-X", "frozen_modules=off", "job.py", **other
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(calls_of_processes(dashboard).values()) == [5]


APPLICATION = """
import os, work
async def app(scope, receive, send):
    if scope["type"] == "http":
        work.work()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": str(os.getpid()).encode()})
def wsgi(environ, start_response):
    work.work()
    start_response("200 OK", [])
    return [str(os.getpid()).encode()]
"""
SERVERS = {
    "uvicorn": "uvicorn job:app --workers 2 --log-level error --port PORT",
    "gunicorn": "gunicorn job:wsgi -w 2 --log-level error -b 127.0.0.1:PORT",
}


@pytest.mark.parametrize("command", SERVERS.values(), ids=SERVERS)
def test_each_worker_of_a_server_reports(folder: Path, dashboard: Dashboard, command: str) -> None:
    (folder / "job.py").write_text(APPLICATION)
    port = free_port()
    full = [
        sys.executable,
        "-m",
        "compilewatch",
        "run",
        "--",
        *command.replace("PORT", str(port)).split(),
    ]
    with subprocess.Popen(
        full, cwd=folder, env=variables(folder, dashboard.endpoint), start_new_session=True
    ) as process:
        server = Service(process, port)
        asked = server.ask(1)
        while len(asked) < 2:
            asked += server.ask(1)
        assert server.stop() == 0
    assert calls_of_processes(dashboard) == {int(pid): 5 * count for pid, count in asked.items()}


def test_a_kernel_of_a_notebook_reports(folder: Path, dashboard: Dashboard) -> None:
    program = (
        "from jupyter_client.manager import start_new_kernel\nmanager, client = "
        "start_new_kernel(kernel_name='python3')\n"
        f"client.execute_interactive({WORK!r})\nclient.stop_channels(); manager.shutdown_kernel()"
    )
    done = run_below(folder, dashboard.endpoint, "python", "-W", "ignore", "-c", program)
    assert done.returncode == 0, done.stderr
    assert sorted(calls_of_processes(dashboard).values()) == [5]


def test_input_output_and_exit_code_pass_through(folder: Path, dashboard: Dashboard) -> None:
    done = run_below(folder, dashboard.endpoint, "bash", "-c", "cat; exit 7", given="text\n")
    assert (done.returncode, done.stdout, done.stderr) == (7, "text\n", "")
    assert (
        run_below(
            folder, dashboard.endpoint, "bash", "-c", "yes | head -n 1; echo ${PIPESTATUS[0]}"
        ).stdout
        == "y\n141\n"
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGUSR1])
def test_a_signal_reaches_the_command_and_ends_it(
    folder: Path, dashboard: Dashboard, number: signal.Signals
) -> None:
    program = f"{WORK}; print('ready', flush=True); import time; time.sleep(60)"
    full = [sys.executable, "-m", "compilewatch", "run", "--", "python", "-c", program]
    env = variables(folder, dashboard.endpoint)
    with subprocess.Popen(
        full, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.wait(60) == -number
    expected = [5] if number in (signal.SIGTERM, signal.SIGINT) else []
    assert sorted(calls_of_processes(dashboard).values()) == expected


def test_a_child_with_its_own_path_is_not_reached_and_runs(
    folder: Path, dashboard: Dashboard
) -> None:
    done = run_below(
        folder,
        dashboard.endpoint,
        "bash",
        "-c",
        f"PYTHONPATH={folder}/library python job.py; python -I -c pass; python -S -c pass",
    )
    assert (done.returncode, done.stderr, dashboard.requests) == (0, "", [])


def test_the_default_start_of_processes_is_among_those_tested() -> None:
    assert set(multiprocessing.get_all_start_methods()) <= set(COMMANDS)
