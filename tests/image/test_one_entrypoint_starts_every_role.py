"""The image's entrypoint, run here unchanged: each word starts its process, and together the
processes accept and fold a report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.flow.stack import wait_for
from tests.image.containers import Containers, send


@pytest.fixture
def containers(tmp_path: Path) -> Iterator[Containers]:
    made = Containers(tmp_path)
    yield made
    made.close()


def test_the_four_roles_take_a_report_and_fold_it(containers: Containers) -> None:
    # Celery warns about root, which containers do not use.
    containers.environment |= {"COMPILEWATCH_LOG": "json", "PYTHONWARNINGS": "ignore"}
    migrated = containers.run("migrate")
    assert migrated.returncode == 0, migrated.stderr
    printed = containers.run("manage", "setup_project", "--name", "Flow", "--user", "ada").stdout
    key = next(word for word in printed.split() if word.startswith("cw_ing_"))
    for role in ("web", "worker"):
        containers.start(role)
    wait_for(
        "web is alive",
        lambda: containers.run("alive", place="web").returncode == 0,
        seconds=120,
        every=1,
    )

    status, answer = send(containers.stack.port, key)
    assert (status, b'"acked":[[1,1]]' in answer) == (200, True), answer
    folded = "SELECT sum(calls) FROM version_minute"
    wait_for("the report is folded", lambda: containers.stack.rows(folded) == [(3,)], seconds=120)
    server_process_dies(containers)
    assert containers.stop() == {"web": 0, "worker": 0}
    for role in ("web", "worker"):
        for line in filter(
            None, (containers.stack.folder / f"{role}.log").read_text().splitlines()
        ):
            assert line == "worker: Warm shutdown (MainProcess)" or json.loads(line)["message"], (
                line
            )


def server_process_dies(containers: Containers) -> None:
    """One of web's processes dies as if out of memory; web logs this, starts another process, and
    responds."""
    psutil.Process(containers.running["web"].pid).children()[-1].kill()
    log = containers.stack.folder / "web.log"
    wait_for("web logs the exit", lambda: "Unexpected exit" in log.read_text(), seconds=60)
    wait_for(
        "web is alive again",
        lambda: containers.run("alive", place="web").returncode == 0,
        seconds=120,
        every=1,
    )


def test_the_role_of_the_previous_release_waits_and_ends_on_sigterm(
    containers: Containers,
) -> None:
    containers.start("beat")
    log = containers.stack.folder / "beat.log"
    wait_for("a sentence", lambda: "workers schedule the stages" in log.read_text(), seconds=60)
    assert containers.stop() == {"beat": 0}


def test_an_unknown_role_is_refused_with_the_list_of_roles(containers: Containers) -> None:
    refused = containers.run("wbe")
    assert (refused.returncode, "expected web, worker, migrate" in refused.stderr) == (
        64,
        True,
    )


def test_a_missing_setting_ends_a_role_with_its_name(containers: Containers) -> None:
    del containers.environment["COMPILEWATCH_REDIS_URL"]
    for role in ("web", "worker", "migrate"):
        ended = containers.run(role)
        assert (
            ended.returncode != 0
            and "COMPILEWATCH_REDIS_URL is missing" in ended.stderr
            and "Traceback" not in ended.stderr
        ), ended
