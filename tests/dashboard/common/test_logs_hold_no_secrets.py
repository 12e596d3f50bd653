"""Log lines contain no key, password, webhook or sign-in link, and name the request that they
belong to."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Callable, Iterator

import pytest
from django.test import Client

from dashboard.common.log_formatters import JsonFormatter, TextFormatter, redact_secrets
from dashboard.common.telemetry import _redact_event, telemetry_start
from dashboard.projects.invitations import invitation_create
from dashboard.projects.key_format import key_text_generate
from dashboard.projects.models import Project

PLANTED = "S3cretValue0123456789"
TEXTS = [
    *(f"refused {key_text_generate(kind).text}" for kind in ("ing", "cmd")),
    f"Authorization: Bearer {PLANTED}",
    f"{{'Authorization': 'Basic {PLANTED}'}}",
    f"postgresql://compilewatch:{PLANTED}@db:5432/cw does not answer",
    f"redis://:{PLANTED}@redis:6379/0",
    f"POST https://hooks.slack.com/services/T0/B0/{PLANTED} was refused",
    f"signed with whsec_{PLANTED}",
    f"Not Found: /invitations/{PLANTED}/",
    f"GET /accounts/oidc/sso/login/callback/?code={PLANTED}&state={PLANTED}",
    f"password={PLANTED}&login=ada",
    f"cookie __Host-cw_session={PLANTED}; other=1",
]


@pytest.fixture(params=[TextFormatter, JsonFormatter])
def lines(request: pytest.FixtureRequest) -> Iterator[Callable[[], str]]:
    """The lines that the server's own handler would write."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(request.param())
    root = logging.getLogger()
    root.addHandler(handler)
    yield out.getvalue
    root.removeHandler(handler)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_each_kind_of_secret_is_removed(text: str, lines: Callable[[], str]) -> None:
    try:
        raise ValueError(text)
    except ValueError:
        logging.getLogger("dashboard.tests").exception("it failed: %s", text)
    written = lines()
    assert "it failed" in written and "ValueError" in written
    assert PLANTED not in written and "***" in written
    assert text.split("_")[-1] not in written or "cw_" not in text


def test_text_without_secrets_is_unchanged() -> None:
    for text in (
        "ranker 2026.11.3 is 31% slower",
        "cw_ing_AbCd1234",
        "https://compilewatch.example.com/p/ranking/",
        "password: too short?"[:9],
    ):
        assert redact_secrets(text) == text


def test_no_request_logs_its_secrets(
    client: Client, project: Project, user: object, api_key: str, lines: Callable[[], str]
) -> None:
    _, token = invitation_create(project=project, role="viewer", actor=user)  # type: ignore[arg-type]
    for path in (
        f"/invitations/{token}/x",
        f"/invitations/{token}/?next={api_key}",
        f"/api/v1/gate?model={api_key}",
        f"/nothing/{api_key}",
    ):
        client.get(path, headers={"authorization": f"Bearer {api_key}"})
    client.post(f"/invitations/{token}/", {"username": "x", "password": PLANTED[:8]})
    client.post("/accounts/login/", {"login": "ada", "password": PLANTED})
    written = lines()
    assert "/invitations/***" in written
    for secret in (token, api_key, PLANTED):
        assert secret not in written


def test_a_log_line_and_its_response_name_the_request(
    client: Client, db: None, lines: Callable[[], str]
) -> None:
    own = client.get("/nothing/", headers={"x-request-id": "from-the-proxy-1"})
    odd = client.get("/nothing/", headers={"x-request-id": "a b\nc"})
    assert own["X-Request-ID"] == "from-the-proxy-1"
    assert len(odd["X-Request-ID"]) == 16
    assert "from-the-proxy-1" in lines() and odd["X-Request-ID"] in lines()


def test_a_json_line_names_reports_and_has_the_traceback_in_one_field() -> None:
    try:
        raise ValueError("no")
    except ValueError:
        record = logging.LogRecord(
            "dashboard.fleet", logging.ERROR, __file__, 1, "folding %d", (3,), sys.exc_info()
        )
    record.reports = ["01J:7"]
    line = json.loads(JsonFormatter().format(record))
    assert (line["message"], line["level"], line["reports"]) == ("folding 3", "error", ["01J:7"])
    assert "Traceback" in line["error"]


def test_events_for_sentry_are_scrubbed_and_a_missing_package_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    event = {
        "message": TEXTS[0],
        "request": {"url": TEXTS[8]},
        "breadcrumbs": [{"message": TEXTS[4]}],
    }
    assert (
        PLANTED not in json.dumps(_redact_event(event, {}))
        and "***" in _redact_event(event, {})["message"]
    )
    assert telemetry_start({}) == []
    assert (
        telemetry_start(
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"}
        )
        == []
    )
