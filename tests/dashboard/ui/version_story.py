"""Starting processes, reported through the wire format: a cold start with its stages, compilations,
and compiled and eager calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Any

from compilewatch.wire.cache_miss_causes import NO_EARLIER_RUN
from compilewatch.wire.messages import COLD_START, Compile, Fact, Report, Request
from django.test import Client

from dashboard.common import clock
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import ModelVersion
from dashboard.projects.models import Project
from tests.dashboard.requests import region_make, request_make

HIT, MISS = {"fx": "hit", "aot": "hit"}, {"fx": "miss", "aot": "miss"}
CONFIGURED = {
    "torch": "2.13.0",
    "inductor_config epilogue_fusion": "4f1c9a2b",
    "cache folder": "deadbeef",
}
NEW_OPTION = {**CONFIGURED, "inductor_config max_autotune": "77aa11bb"}
BEFORE = 9.0
"""Seconds before the first compilation."""


@dataclass
class Story:
    """Sends starts of one model, each some minutes after the previous one."""

    store: Callable[..., object]
    started: int = 0
    numbers: dict[str, int] = field(default_factory=dict)

    def start(
        self,
        version: str,
        *,
        compiling: float = 30.0,
        ago: int = 60,
        components: dict[str, str] | None = None,
        **told: Any,
    ) -> None:
        """Send a process of this version that started `ago` minutes ago, compiled for `compiling`
        seconds, then served for one minute."""
        self.started += 1
        number = self.started
        now = clock.unix() // 60 * 60
        end = now - 60 * ago
        began = end - 60 - BEFORE - compiling - 2.0
        request = request_make(
            version=version,
            end=end,
            instance=number,
            host=told.pop("host", f"gpu-{number:02d}"),
            components=CONFIGURED if components is None else components,
            **told.pop("identity", {}),
        )
        request.instance.started, request.sent = began, clock.unix()
        self._send(request, request.reports[0], began, compiling, told)
        self.store(request)

    def _send(
        self, request: Request, report: Report, began: float, compiling: float, told: dict[str, Any]
    ) -> None:
        timed = told.pop("timed", ())
        for number, one in enumerate(timed):
            one.at, one.id = began + BEFORE + compiling + number, f"0/{number}"
        plain = told.pop("compiles", None)
        report.compiles = (
            list(timed)
            or plain
            or [compiled(began + BEFORE + compiling, compiling, told.pop("cache", HIT), **told)]
        )
        if told.get("stages", True):
            report.facts = [cold_start(report.window[0], began, compiling)]
        report.facts += [
            Fact("parity", report.window[0], data) for data in told.get("parities", ())
        ]
        report.findings = list(told.get("findings", ()))
        calls, eager = told.get("calls", 1000), told.get("eager", 0)
        runtime = told.get("runtime", "torch.compile")
        by = {"limit": eager} if eager else {}
        served = 0 if runtime == "eager" else calls - eager
        region = region_make(
            calls=calls, p50=told.get("p50", 0.01), runtime=runtime, compiled=served, eager_by=by
        )
        report.regions = [region, *told.get("beside", ())]

    def fold(self) -> None:
        """Process all stored requests into facts."""
        fold_all()


def regress(story: Story) -> Story:
    """Three warm starts of version 1, then three cold starts of version 2, which introduced an
    option."""
    for number in range(3):
        story.start("1", compiling=10.0 + number, ago=120 - number, key="ak1")
    for number in range(3):
        story.start(
            "2",
            compiling=40.0 + number,
            ago=60 - number,
            cache=MISS,
            miss=NO_EARLIER_RUN,
            key="ak2",
            components=NEW_OPTION,
        )
    story.fold()
    return story


def compiled(at: float, seconds: float, cache: dict[str, str], **fields: Any) -> Compile:
    """A first compilation that ends at `at`."""
    given = (
        "kind",
        "miss",
        "saved",
        "in_request",
        "reason",
        "reason_kind",
        "key",
        "frame",
        "entries",
        "limit",
    )
    wanted = {name: fields[name] for name in given if name in fields}
    wanted.setdefault("frame", "score_batch")
    kind = wanted.pop("kind", "first")
    phases = {
        "total": seconds,
        "dynamo": 0.2 * seconds,
        "inductor": 0.6 * seconds,
        "triton": 0.1 * seconds,
    }
    return Compile(
        at,
        "0/0",
        kind,
        "ok",
        file="ranker/score.py",
        line=118,
        seconds=phases,
        cache=cache,
        **wanted,
    )


def cold_start(end: float, began: float, compiling: float) -> Fact:
    """Three seconds of Python and torch, weights, then compilations, half a second without an
    explanation, and the first calls."""
    stages = {
        "before init": [0.0, 0.5],
        "import torch": [0.5, 2.5],
        "weights loaded": [3.0, 5.5],
        "compile": [BEFORE, compiling],
        "first compiled call": [BEFORE + compiling, 1.5],
    }
    phases = {"dynamo": 0.2 * compiling, "inductor": 0.6 * compiling, "triton": 0.1 * compiling}
    said = {
        "began": began,
        "total": BEFORE + compiling + 2.0,
        "until": "ready",
        "stages": stages,
        "phases": phases,
        "unaccounted": 1.0,
    }
    return Fact("mark", end, {"name": COLD_START, **said})


TABS = ("compiles", "startup")


def url_of(project: Project, version: str, end: str = "/") -> str:
    """The address of a version, of its files with `end`."""
    found = ModelVersion.objects.get(project=project, name=version)
    return f"/p/{project.slug}/models/{found.model_id}/versions/{found.pk}{end}"


def tab_of(project: Project, version: str, tab: str, query: str = "") -> str:
    """The address of a tab of a version."""
    found = ModelVersion.objects.get(project=project, name=version)
    more = query.replace("?", "&")
    return f"/p/{project.slug}/models/{found.model_id}/{tab}/?version={found.pk}{more}"


def shown(
    client: Client, project: Project, version: str, query: str = "", *, tabs: Sequence[str] = TABS
) -> str:
    """The text of the tabs of a version with normalized spaces."""
    texts = []
    for tab in tabs:
        answer = client.get(tab_of(project, version, tab, query))
        assert answer.status_code == 200, (tab, answer.status_code)
        text = answer.content.decode().split('<main id="main"')[1].split("</main>")[0]
        texts.append(unescape(text).replace("\u00a0", " "))
    return " ".join(" ".join(texts).split())


def part(text: str, name: str) -> str:
    """One card of the tabs."""
    assert f'aria-labelledby="{name}"' in text, name
    return text.split(f'aria-labelledby="{name}"')[1].split("</section>")[0]
