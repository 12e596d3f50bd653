"""`doctor`, `run` and `version` do what a new user expects."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import compilewatch
import pytest

from tests.agent.programs import command
from tests.agent.server import Dashboard
from tests.agent.signed import PUBLIC, SYMMETRIC

PROGRAM = """
import sys, torch

class Net(torch.nn.Module):
    def forward(self, x):
        return x.sin()

@torch.compile(backend="eager")
def step(x):
    return x + 1

net = torch.compile(Net(), backend="eager")
for _ in range(3):
    step(net(torch.ones(4)))
print(__name__, sys.argv[1:])
sys.exit(4)
"""


def test_version_prints_the_version() -> None:
    assert (
        command("version").stdout == command("--version").stdout == f"{compilewatch.__version__}\n"
    )


def test_doctor_reports_whether_another_job_can_sign_commands(dashboard: Dashboard) -> None:
    settings = {
        "ENDPOINT": dashboard.endpoint,
        "API_KEY": "k",
        "MODEL": "m",
        "ALLOW_REMOTE": "freeze",
    }
    keys = {"yes": {"COMMAND_PUBLIC_KEY": PUBLIC}, "partly": {"COMMAND_KEY": SYMMETRIC}}
    for answer, key in keys.items():
        found = json.loads(command("doctor", "--json", **settings, **key).stdout)
        assert found["healthy"] and found["capabilities"]["command_signatures"][0] == answer
    wrong = command("doctor", "--json", **settings, COMMAND_PUBLIC_KEY=SYMMETRIC)
    assert (
        "COMPILEWATCH_COMMAND_PUBLIC_KEY must be the 64 hexadecimal digits" in wrong.stdout
        and SYMMETRIC not in wrong.stdout
    )


def test_doctor_reports_a_healthy_setup(dashboard: Dashboard) -> None:
    done = command("doctor", "--json", ENDPOINT=dashboard.endpoint, API_KEY="k", MODEL="m")
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert (found["settings"], found["dashboard"], found["healthy"]) == (
        "ok",
        "ok: reachable, and the key is valid",
        True,
    )
    assert found["capabilities"]["compilations"] == ["yes", ""]
    assert found["identity"]["model"] == "m"
    assert dashboard.requests[0]["reports"] == []
    named_in_code = command("doctor", ENDPOINT=dashboard.endpoint, API_KEY="k")
    assert named_in_code.returncode == 0 and "(named by init)" in named_in_code.stdout


@pytest.fixture
def without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python without torch, for tests that are not about torch."""
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))


WRONG = {
    "an unknown key": (
        401,
        {"cw": 1, "code": "bad_key", "detail": "the key is unknown"},
        "HTTP 401 bad_key: the key is unknown",
        "a new key",
    ),
    "a page of a proxy": (
        200,
        "<html>Welcome</html>",
        "HTTP 200, but not from a compilewatch dashboard",
        "another program answered",
    ),
    "another protocol": (
        426,
        {"cw": 1, "code": "wrong_version", "detail": "old"},
        "HTTP 426 wrong_version: old",
        "update the agent",
    ),
}


@pytest.mark.parametrize(("status", "body", "said", "advice"), WRONG.values(), ids=WRONG.keys())
@pytest.mark.usefixtures("without_torch")
def test_doctor_names_the_fault_and_the_remedy(
    dashboard: Dashboard, status: int, body: object, said: str, advice: str
) -> None:
    dashboard.scripts = [
        lambda data: (
            status,
            {},
            body.encode() if isinstance(body, str) else json.dumps(body).encode(),
        )
    ] * 2
    done = command("doctor", ENDPOINT=dashboard.endpoint, API_KEY="k", MODEL="m")
    assert done.returncode == 1
    assert (
        f"dashboard  {said}" in done.stdout
        and advice in done.stdout.split("to do ")[1].splitlines()[0]
    )
    found = json.loads(
        command("doctor", "--json", ENDPOINT=dashboard.endpoint, API_KEY="k", MODEL="m").stdout
    )
    assert (found["schema"], found["healthy"]) == (1, False) and advice in found["advice"]


@pytest.mark.usefixtures("without_torch")
def test_doctor_reports_no_answer_and_missing_settings(tmp_path: Path) -> None:
    away = command("doctor", ENDPOINT="http://127.0.0.1:9", API_KEY="k", MODEL="m")
    assert away.returncode == 1 and "cannot be reached: ConnectionRefusedError" in away.stdout
    unset = command("doctor")
    assert unset.returncode == 1 and "settings   no endpoint" in unset.stdout
    nowhere = command("doctor", ENDPOINT=f"file:{tmp_path}/no/reports.jsonl", MODEL="m")
    assert nowhere.returncode == 1 and f"the folder {tmp_path}/no does not exist" in nowhere.stdout
    assert command("doctor", "--no-such-option").returncode == 2


@pytest.mark.parametrize("name", ["", "run", "doctor", "replay", "import-trace", "version"])
def test_every_command_explains_itself_and_its_exit_codes(name: str) -> None:
    done = command(*filter(None, [name]), "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "exit codes" in done.stdout and max(map(len, done.stdout.splitlines())) <= 105
    if not name:
        assert all(
            f"\n    {one}" in done.stdout
            for one in ("run", "doctor", "replay", "import-trace", "version")
        )
        assert all(
            f"COMPILEWATCH_{one} " in done.stdout
            for one in ("ENDPOINT", "API_KEY", "MODEL", "VERSION")
        )


def test_run_watches_compilations_of_a_program(tmp_path: Path, dashboard: Dashboard) -> None:
    (tmp_path / "serve.py").write_text(PROGRAM)
    done = command(
        "run",
        "--model",
        "m",
        "--",
        "python",
        "serve.py",
        "--port",
        "1",
        folder=tmp_path,
        ENDPOINT=dashboard.endpoint,
        API_KEY="k",
    )
    assert (done.returncode, done.stdout) == (4, "__main__ ['--port', '1']\n")
    assert (dashboard.calls("step"), dashboard.calls("Net")) == (3, 3)
    assert dashboard.requests[0]["instance"]["model"] == "m"


def test_run_watches_once_if_the_program_also_watches(tmp_path: Path, dashboard: Dashboard) -> None:
    (tmp_path / "python_serve.py").write_text(
        "import compilewatch\n" + PROGRAM.replace("torch.compile", "compilewatch.compile")
    )
    done = command(
        "run",
        "python_serve.py",
        folder=tmp_path,
        ENDPOINT=dashboard.endpoint,
        API_KEY="k",
        MODEL="m",
    )
    assert (done.returncode, done.stderr) == (4, "")
    assert (dashboard.calls("step"), dashboard.calls("Net")) == (3, 3)
