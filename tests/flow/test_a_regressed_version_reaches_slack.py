"""Two versions report side by side; the newer is slower and partly eager; exactly one ROLL BACK
message is sent."""

import time

import pytest

from dashboard.demo.sender import Endpoint, batch_reports, build_past_reports
from dashboard.demo.simulated_fleet import build_fleet, build_instances
from tests.flow.receiver import Receiver
from tests.flow.stack import Stack, wait_for

pytestmark = pytest.mark.timeout(300)


def test_a_regressed_version_reaches_slack(stack: Stack, slack: Receiver) -> None:
    ranker = build_fleet(judged_minutes=40)[0]
    start_minute = int(time.time() // 60) - 1
    endpoint = Endpoint(port=stack.port, key=stack.key)
    calls = 0
    for instance in build_instances((ranker,), start_minute=start_minute):
        instance.first_minute = max(instance.first_minute, start_minute - 90)
        for batch in batch_reports(build_past_reports(instance, start_minute=start_minute)):
            endpoint.send(instance, batch)
            calls += sum(region.calls for report in batch for region in report.regions)

    wait_for("the message", lambda: slack.messages, seconds=120)
    wait_for("everything is folded", stack.folded, seconds=60)
    message = slack.messages[0]
    text = str(message)
    assert "ROLL BACK" in text
    assert "2026.11.3" in text
    assert "2026.11.2" in text
    assert "simulated" in text.lower()
    assert message["text"]
    assert message["blocks"][0]["type"] == "header"

    assert stack.rows("SELECT sum(calls) FROM version_hour")[0][0] == calls
    kinds = [row[0] for row in stack.rows("SELECT kind FROM verdict WHERE current ORDER BY kind")]
    assert "roll_back" in kinds
    assert (
        stack.rows("SELECT count(*) FROM alert WHERE state = 'open' AND severity = 'roll_back'")[0][
            0
        ]
        == 1
    )
    time.sleep(12)
    assert len(slack.messages) == 1
