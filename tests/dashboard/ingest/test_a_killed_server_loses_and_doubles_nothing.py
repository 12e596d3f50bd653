"""kill -9 of the server around its commit: the sender gets no response, sends again, and the report
is counted once."""

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from http.client import HTTPException

import pytest
from compilewatch.wire.messages import Request
from django.conf import settings
from django.db import connection

from dashboard.ingest.models import InboxRow
from tests.dashboard.ingest.conftest import LIVENESS, Endpoint

pytestmark = pytest.mark.django_db(transaction=True)


def environment() -> dict[str, str]:
    """The settings of this test run, with its own database."""
    database = connection.settings_dict
    name = str(database["NAME"])
    url = (
        f"sqlite:///{name}"
        if connection.vendor == "sqlite"
        else f"postgresql://{database['USER']}@{database['HOST']}:{database['PORT']}/{name}"
    )
    return {
        **os.environ,
        "COMPILEWATCH_DATABASE_URL": url,
        "COMPILEWATCH_KEY_PEPPER": settings.KEY_PEPPER,
        "DJANGO_SETTINGS_MODULE": "dashboard.settings",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }


@pytest.mark.parametrize(
    ("place", "stored_at_death"),
    [("web_parsed", 0), ("web_before_commit", 0), ("web_committed", 3)],
)
@pytest.mark.parametrize("last", [3, 4], ids=["continuous", "with a gap"])
def test_the_repeated_report_is_counted_once(
    place: str,
    stored_at_death: int,
    last: int,
    endpoint: Endpoint,
    make_request: Callable[..., Request],
) -> None:
    if place == "web_before_commit" and last == 3 and connection.vendor == "postgresql":
        # one statement inserts and commits a continuous range there: no crash point lies between
        last = 5
    request = make_request(minutes=3)
    request.reports[2].seq = (last, last)
    with ExitStack() as stack:
        command = [sys.executable, "-m", "tests.dashboard.ingest.dying_server", place]
        child = stack.enter_context(
            subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True)
        )
        stack.callback(child.kill)
        assert child.stdout is not None
        dying = Endpoint(int(child.stdout.readline()), endpoint.key)
        with pytest.raises((HTTPException, OSError)):
            dying.report(request)
        assert child.wait(timeout=LIVENESS) == -9
    assert InboxRow.objects.count() == stored_at_death
    assert endpoint.report(request).json["acked"] == [[1, 1], [2, 2], [last, last]]
    assert InboxRow.objects.count() == 3
