"""One running dashboard for all hostile tests of a file, with several keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.environment import DATABASE
from tests.flow.receiver import Receiver
from tests.flow.stack import Stack, host_port
from tests.hostile.target import Target

MORE_KEYS = """
from datetime import timedelta
from dashboard.common import clock
from dashboard.projects.models import Project
from dashboard.projects.services import key_create, key_revoke, project_create
project = Project.objects.get(slug="flow")
revoked = key_create(project=project)
key_revoke(key=revoked[0])
slow = project_create(name="Slow", slug="slow")
slow.settings = {"reports_per_second": 2}
slow.save()
made = {
    "revoked": revoked[1],
    "expired": key_create(project=project, expires_at=clock.now() - timedelta(seconds=1))[1],
    "reading": key_create(project=project, kind="api")[1],
    "url": key_create(project=project)[1],
    "foreign": key_create(project=project_create(name="Other", slug="other"))[1],
    "slow": key_create(project=slow)[1],
}
print("\\n".join(f"{name} {text}" for name, text in made.items()))
"""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A dashboard on the database under test."""
    receiver = Receiver()
    folder: Path = tmp_path_factory.mktemp("hostile")
    stack = Stack(database=DATABASE, folder=folder, outbound=host_port(receiver.url))
    try:
        stack.start(channel=receiver.url)
        said = stack.manage("shell", "-v", "0", "-c", MORE_KEYS)
        others = dict(re.findall(r"^(\w+) (cw_\w+)$", said, re.MULTILINE))
        others["mistyped"] = stack.key[:-1] + ("a" if stack.key[-1] != "a" else "b")
        yield Target(stack, stack.key, others)
    except BaseException:
        print(stack.logs())
        raise
    finally:
        stack.close()
        receiver.close()
