"""Characters that hide text, reverse a line or control a terminal appear as their code, on pages
and in messages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from compilewatch.wire.messages import Compile, Fact, Finding, Report, Request
from django.test import Client

from dashboard.alerts.channels.base import Message
from dashboard.alerts.channels.slack_blocks import message_blocks
from dashboard.alerts.models import Alert
from dashboard.alerts.payloads import build_alert_payload
from dashboard.common import clock
from dashboard.common.unicode_safety import (
    _HIDDEN_IN_NAME,
    _HIDDEN_IN_TEXT,
    visible_name,
    visible_text,
)
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import Deployment, Instance, ModelVersion, WatchedModel
from dashboard.fleet.models import Finding as StoredFinding
from dashboard.regressions.models import Verdict, VerdictKind

HIDING = [
    "\u202egnp.exe",
    "zero\u200bwidth",
    "bom\ufeff",
    "\u2066iso\u2069",
    "esc\x1b[31m",
    "line\r\nbreak",
    "soft\u00adhyphen",
    "tag\U000e0041",
]


@pytest.mark.parametrize("text", HIDING, ids=range(len(HIDING)))
def test_hidden_characters_are_shown_and_nothing_is_lost(text: str) -> None:
    shown = visible_name(text)
    assert _HIDDEN_IN_NAME.search(shown) is None and "<U+" in shown
    assert visible_name(shown) == shown != visible_name(_HIDDEN_IN_NAME.sub("", text))


def test_letters_of_any_script_are_unchanged() -> None:
    for text in ("ranker", "modèle-é", "דגם", "模型 7", "🚀"):
        assert visible_name(text) == visible_text(text) == text


def test_a_text_keeps_its_lines() -> None:
    assert visible_text("one\r\n\ttwo\x1b") == "one\n\ttwo<U+001B>"
    assert visible_name("one\ntwo") == "one<U+000A>two"


def hostile(report: Report) -> None:
    text = "".join(HIDING)
    report.findings.append(Finding("graph_break", text, text, 2))
    report.compiles.append(
        Compile(report.window[1], "0/0", "compile", "ok", frame=text, file=text, reason=text)
    )
    report.facts.append(
        Fact("latched_eager", report.window[1], {"frame": text, "cause": text, "file": text})
    )
    report.regions[0].name = report.regions[0].bucket = text


@pytest.mark.django_db
def test_pages_and_messages_show_every_character_of_a_name(
    make_request: Callable[..., Request], store_reports: Callable[..., object], signed_in: Client
) -> None:
    name = "".join(HIDING)
    fields = {
        "model": f"m{name}",
        "version": f"v{name}",
        "environment": f"e{name}",
        "host": name,
        "job": name,
        "torch": name,
    }
    store_reports(make_request(minutes=2, change=hostile, **fields))
    fold_all()
    model, deployment = WatchedModel.objects.get(), Deployment.objects.get()
    assert model.name == visible_name(
        f"m{name}"
    ) and ModelVersion.objects.get().name == visible_name(f"v{name}")
    assert (
        Instance.objects.get().host == visible_name(name)
        and "<U+202E>gnp.exe" in StoredFinding.objects.earliest("pk").text
    )
    sentence = f"Roll back {deployment.version.name}: it is slower in {deployment.environment}."
    verdict = Verdict.objects.create(
        project=model.project,
        deployment=deployment,
        kind=VerdictKind.ROLL_BACK,
        sentence=sentence,
        evidence={},
        minute=1,
        created_at=clock.now(),
    )
    alert = Alert.objects.create(
        project=model.project, deployment=deployment, number=1, verdict=verdict, title=sentence, severity="roll_back", worst="roll_back",
        opened_at=clock.now() - timedelta(minutes=1),
    )  # fmt: skip
    for address in (
        "",
        f"models/{model.pk}/",
        f"models/{model.pk}.json",
        "alerts/",
        f"alerts/{alert.number}/",
    ):
        text = signed_in.get(f"/p/ranking/{address}").content.decode()
        assert _HIDDEN_IN_TEXT.search(text) is None, address
        assert "U+202E" in text, address
    assert (
        "<bdi>v&lt;U+202E&gt;gnp.exe"
        in signed_in.get(f"/p/ranking/models/{model.pk}/").content.decode()
    )
    said, blocks = message_blocks(
        Message("1", "opened", clock.now(), build_alert_payload(alert=alert, verdict=verdict))
    )
    assert _HIDDEN_IN_TEXT.search(said + str(blocks)) is None and "U+202E" in said
