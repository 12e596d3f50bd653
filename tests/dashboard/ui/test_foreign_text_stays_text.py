"""Names and text come from agents and may be hostile: every page escapes them, and no page contains
inline code."""

from html.parser import HTMLParser

import pytest
from django.test import Client
from django.utils.html import escape

from dashboard.alerts.models import Alert, AlertEvent, Channel, Delivery, RollbackGuide
from dashboard.fleet.models import Deployment, Instance, ModelVersion, WatchedModel
from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'-alert(1)-'",
    "</title><svg onload=alert(1)>",
    "{{ 7*7 }}{% debug %}",
    "javascript:alert(1)",
    "\u202egnp.exe",
    "a" * 200,
]


def poison(alert: Alert, text: str) -> None:
    WatchedModel.objects.filter(pk=alert.deployment.model_id).update(name=text[:200])
    ModelVersion.objects.filter(
        model=alert.deployment.model_id, pk=alert.deployment.version_id
    ).update(name=text[:200])
    Deployment.objects.filter(model=alert.deployment.model_id).update(environment=text[:64])
    Instance.objects.update(
        host=text[:200], torch=text[:64], capabilities={"compilations": ["no", text]}
    )
    Verdict.objects.update(sentence=text, cause=text)
    Alert.objects.update(title=text)
    AlertEvent.objects.update(text=text, actor_name=text[:150])
    Channel.objects.update(name=text[:100], disabled_reason=text)
    Delivery.objects.update(last_answer=text)
    RollbackGuide.objects.update(model_name=text[:200], text=text, url="javascript:alert(1)"[:200])
    Project.objects.filter(pk=alert.project_id).update(name=text[:100])


class Dangers(HTMLParser):
    """Everything in a page that a browser would execute: inline code, handlers, styles, and
    addresses that are code."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("img", "style", "iframe", "object") or (
            tag == "script" and not (given.get("src") or "").startswith("/static/")
        ):
            self.found.append(tag)
        self.found += [name for name in given if name.startswith("on") or name == "style"]
        self.found += [
            value
            for name, value in attrs
            if name in ("href", "src", "action") and value and "script:" in value
        ]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_escaped_on_every_page(signed_in: Client, alert: Alert, text: str) -> None:
    poison(alert, text)
    for address in (
        "/p/ranking/",
        "/p/ranking/alerts/",
        f"/p/ranking/alerts/{alert.number}/",
        "/p/ranking/setup/",
        "/p/ranking/settings/guides/",
    ):
        html = signed_in.get(address).content.decode()
        assert Dangers(html).found == []
        assert escape(text[:60]) in html


def test_no_page_contains_inline_code_or_styles(signed_in: Client, alert: Alert) -> None:
    pages = [
        "/p/ranking/",
        "/p/ranking/alerts/",
        f"/p/ranking/alerts/{alert.number}/",
        "/p/ranking/setup/",
        "/p/unknown/",
        "/accounts/logout/",
    ]
    for address in pages:
        answer = signed_in.get(address)
        assert Dangers(answer.content.decode()).found == []
        assert "default-src 'none'" in answer["Content-Security-Policy"]
        assert "unsafe" not in answer["Content-Security-Policy"]


def test_malformed_evidence_does_not_break_a_page(signed_in: Client, alert: Alert) -> None:
    for evidence in (
        {},
        {"evidence": "no list"},
        {"evidence": [{"metric": 7, "change": "x", "low": None}], "not_compared": [{}]},
        {"metrics": [None]},
    ):
        Verdict.objects.update(evidence=evidence)
        for address in ("/p/ranking/", f"/p/ranking/alerts/{alert.number}/"):
            assert signed_in.get(address).status_code == 200
