"""`manage.py web` refuses the embedded mode, where only one process may write, and explains in a
sentence why it cannot listen."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable

import pytest
from django.core.management import CommandError, call_command

from dashboard.common.bind_port import PortUnavailableError, port_probe
from dashboard.environment.settings import ROOT
from tests.dashboard.test_a_wrong_setting_is_one_sentence import FULL
from tests.flow.stack import free_port


def test_the_embedded_mode_is_refused(settings: object) -> None:
    settings.EMBEDDED = True  # type: ignore[attr-defined]
    with pytest.raises(CommandError, match=r"manage\.py serve"):
        call_command("web")


def web(**changed: str) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("COMPILEWATCH_")
    }
    nobody = {"COMPILEWATCH_DATABASE_URL": f"postgresql://cw@127.0.0.1:{free_port()}/cw"}
    words = [sys.executable, "manage.py", "web", "--workers", "1"]
    return subprocess.run(
        words,
        cwd=ROOT,
        env={**kept, **FULL, **nobody, **changed},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_port_in_use_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = web(COMPILEWATCH_PORT=str(port))
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1), ended.stderr
    assert f"port {port} is in use by another process" in ended.stderr


@pytest.mark.parametrize("address", ["203.0.113.9", "2001:db8::9", "no-such-name.invalid", ":::"])
def test_an_address_of_another_machine_is_one_sentence(address: str) -> None:
    ended = web(COMPILEWATCH_LISTEN=address, COMPILEWATCH_PORT=str(free_port()))
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1), ended.stderr
    assert f"cannot listen on {address} port " in ended.stderr


def test_a_name_of_this_machine_is_resolved_to_its_address() -> None:
    assert port_probe(host="localhost", port=free_port()) == "127.0.0.1"


def test_a_replacement_process_may_share_the_port() -> None:
    def listens(share: bool, then: Callable[[int], object]) -> None:
        with socket.socket() as old:
            if share:
                old.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            old.bind(("127.0.0.1", 0))
            old.listen()
            then(old.getsockname()[1])

    listens(True, lambda port: port_probe(host="127.0.0.1", port=port))
    with pytest.raises(PortUnavailableError):
        listens(False, lambda port: port_probe(host="127.0.0.1", port=port))
