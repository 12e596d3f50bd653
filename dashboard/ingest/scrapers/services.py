"""Scrape services: fetch an engine outside any transaction, then store the report and the counters
in one, so that nothing is counted twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import VERSION, Request
from django.conf import settings

from dashboard.accounts.services import audit_write
from dashboard.common import clock
from dashboard.common.outbound.client import OutboundError, OutboundLimits, outbound_get
from dashboard.common.outbound.url import TargetError, parse_target
from dashboard.common.unicode_safety import visible_name
from dashboard.common.write_lock import write_transaction
from dashboard.ingest.batch import batch_read
from dashboard.ingest.body_decoder import RefusalError
from dashboard.ingest.models import BucketLayout, EngineTarget
from dashboard.ingest.scrapers.metric_names import FORMATS, EngineFormat
from dashboard.ingest.scrapers.parser import (
    MetricsParseError,
    Snapshot,
    diff_snapshots,
    encode_bounds,
    has_restarted,
    name_layout,
    snapshot_read,
)
from dashboard.ingest.scrapers.startup_logs import stages_read
from dashboard.ingest.scrapers.to_report import (
    Engine,
    build_identity,
    build_request,
    build_startup_report,
)
from dashboard.ingest.services import reports_store
from dashboard.projects.models import Project

LIMITS = OutboundLimits(connect=3.0, total=8.0, answer=4 << 20)
ONE_PASS_SECONDS = 60.0
MAX_TARGETS = 200
Fetch = Callable[[str], str]


SHARED_ADDRESS_TEXT = (
    "Several processes answer at this address in turn, so counts are meaningless: add the "
    "address of each process."
)


class EngineError(ValueError):
    """An engine cannot be added with these fields; the text states the expected value."""


def engine_add(
    *,
    project: Project,
    url: str,
    engine: str,
    model: str,
    version: str,
    environment: str = "production",
    gpu: str = "",
) -> EngineTarget:
    """Adds an engine, or changes the engine at the same address. Later counts belong to the given
    model and version."""
    _check_names(model=model, version=version, environment=environment)
    _check_target(url, engine, gpu)
    with write_transaction():
        if EngineTarget.objects.filter(project=project).exclude(url=url).count() >= MAX_TARGETS:
            raise EngineError(f"The project already has {MAX_TARGETS} engines; remove one first.")
        named = {
            "engine": engine,
            "model_name": visible_name(model)[:200],
            "version_name": visible_name(version)[:200],
        }
        named |= {"environment": visible_name(environment)[:64], "gpu": gpu}
        target, _ = EngineTarget.objects.update_or_create(
            project=project, url=url, defaults=named | _build_unread_state()
        )
        audit_write(
            action="engine.add",
            subject=url[:200],
            project_id=project.pk,
            actor_name="scrape",
            after=named,
        )
    return target


def _build_unread_state() -> dict[str, Any]:
    """The columns of an engine that was never read."""
    return {
        "created_at": clock.now(),
        "started": None,
        "next_seq": 1,
        "counted": None,
        "read_at": None,
        "trouble": "",
        "log": {},
    }


def _check_names(*, model: str, version: str, environment: str) -> None:
    for name, text, most in (
        ("model", model, 200),
        ("version", version, 200),
        ("environment", environment, 64),
    ):
        if not text.strip() or "\0" in text or len(text) > most:
            raise EngineError(f"{name} is {text!r}, expected 1 to {most} characters.")


def _check_target(url: str, engine: str, gpu: str) -> None:
    if engine not in FORMATS:
        raise EngineError(f"engine is {engine!r}, expected one of {', '.join(FORMATS)}.")
    try:
        parse_target(url, settings.OUTBOUND_ALLOW)
    except TargetError as error:
        said = (
            "For a private address, plain http or another port, add host:port to "
            "COMPILEWATCH_OUTBOUND_ALLOW."
        )
        raise EngineError(f"{error} {said}") from error
    if len(url) > 500 or len(gpu) > 100:
        raise EngineError("The address is longer than 500 characters, or the GPU name than 100.")


def engine_remove(*, project: Project, url: str) -> None:
    """Stops reading the engine; its stored data remains."""
    with write_transaction():
        if not EngineTarget.objects.filter(project=project, url=url).delete()[0]:
            raise EngineError(f"{url} is not an engine of this project.")
        audit_write(
            action="engine.remove", subject=url[:200], project_id=project.pk, actor_name="scrape"
        )


def fetch(url: str) -> str:
    """The text at the address. All outbound requests pass the same checks."""
    answer = outbound_get(url=url, headers={"Accept": "text/plain"}, limits=LIMITS)
    if answer.status != 200:
        raise MetricsParseError(f"The engine responds with status {answer.status}.")
    if answer.cut:
        raise MetricsParseError(
            f"The response is longer than {LIMITS.answer >> 20} MiB, or incomplete."
        )
    return answer.text


def engines_read(*, get: Fetch = fetch, seconds: float = ONE_PASS_SECONDS) -> int:
    """Reads every engine once within `seconds`, longest-waiting first. Engines that do not fit are
    first in the next pass."""
    stop, done = time.monotonic() + seconds, 0
    for target in EngineTarget.objects.order_by("tried_at", "pk"):
        if time.monotonic() > stop:
            break
        done += engine_read(target=target, get=get)
    return done


def engine_read(*, target: EngineTarget, get: Fetch = fetch) -> bool:
    """Reads one engine. An error becomes a sentence on the target and stores no report."""
    wanted, tried = FORMATS[target.engine], clock.unix()
    try:
        now = snapshot_read(get(target.url), wanted)
    except (OutboundError, MetricsParseError) as error:
        EngineTarget.objects.filter(pk=target.pk).update(tried_at=tried, trouble=str(error))
        return False
    with write_transaction():
        held = EngineTarget.objects.select_for_update().filter(pk=target.pk).first()
        # Another worker has read it meanwhile: this reading is older than the stored one.
        if held is None or held.next_seq != target.next_seq or held.read_at != target.read_at:
            return False
        _store_snapshot(held, wanted, now, clock.unix())
    return True


def _store_snapshot(target: EngineTarget, wanted: EngineFormat, now: Snapshot, at: float) -> None:
    before, others = Snapshot.from_json(target.counted) if target.counted else None, False
    if before is None:
        # Counts from before the first reading belong to no window.
        target.started, found = now.started if now.started is not None else at, None
    elif (
        has_restarted(before, now)
        and now.started is not None
        and now.started < (target.read_at or 0.0) - 1.0
    ):
        target.started, target.next_seq, target.log, found = now.started, 1, {}, None
        others = True
    elif has_restarted(before, now):
        target.started = (
            now.started if now.started is not None else max(target.read_at or 0.0, at - 1.0)
        )
        target.next_seq, target.log, found = 1, {}, diff_snapshots(None, now)
    else:
        found = diff_snapshots(before, now)
    if found is not None and target.read_at is not None and at > target.read_at:
        begin = max(target.read_at, target.started or 0.0)
        _store_report(target, wanted, found, (min(begin, at), at), now)
    target.tried_at = target.read_at = at
    target.counted, target.trouble = (
        now.as_json(),
        SHARED_ADDRESS_TEXT if others else _describe_trouble(now, wanted),
    )
    target.save()


def _store_report(
    target: EngineTarget,
    wanted: EngineFormat,
    found: Snapshot,
    window: tuple[float, float],
    now: Snapshot,
) -> None:
    """Stores the report in the inbox like an agent's report. The surrounding transaction also
    stores the counters."""
    bounds = {name: one.bounds for name, one in now.parts.items()}
    kept = {name_layout(one): encode_bounds(one) for one in bounds.values()}
    layouts = [
        BucketLayout(name=name, bounds=kept[name]) for name in sorted(kept)
    ]  # in one order, so that two readers do not deadlock
    BucketLayout.objects.bulk_create(layouts, ignore_conflicts=True)
    started = target.started if target.started is not None else window[0]
    request = build_request(
        engine=_to_engine(target),
        wanted=wanted,
        started=started,
        seq=target.next_seq,
        window=window,
        found=found,
        bounds=bounds,
        log=bool(target.log),
    )
    _store_request(target, request)


def _store_request(target: EngineTarget, request: Request) -> None:
    batch = batch_read(text=dumps(request), project_id=target.project_id, received=request.sent)
    [stored] = reports_store([batch])
    if stored.rejected:
        raise RefusalError("bad_request", f"{stored.rejected[0].code}: {stored.rejected[0].detail}")
    target.next_seq += 1


def import_engine_log(*, project: Project, url: str, lines: Iterable[str]) -> dict[str, float]:
    """Stores the stages of the running engine's start-up log, once for any number of calls. Returns
    seconds per stage."""
    stages = stages_read(lines)
    if not stages:
        raise EngineError(
            "The log has no known line about torch.compile, CUDA graphs or the engine's init."
        )
    with write_transaction():
        target = EngineTarget.objects.select_for_update().filter(project=project, url=url).first()
        if target is None or target.started is None or not target.counted:
            raise EngineError(
                f"{url} is not an engine of this project, or has not been read yet: a log must "
                "belong to a running engine."
            )
        if target.log == stages:
            return stages
        target.log = stages
        wanted, counted = FORMATS[target.engine], Snapshot.from_json(target.counted)
        bounds, failures = (
            {name: one.bounds for name, one in counted.parts.items()},
            counted.failed is not None,
        )
        identity = build_identity(
            _to_engine(target), wanted, target.started, bounds, log=True, failures=failures
        )
        at = clock.unix()
        _store_request(
            target,
            Request(
                VERSION,
                at,
                identity,
                [build_startup_report(target.next_seq, at, target.engine, stages)],
            ),
        )
        target.save()
    return stages


def _to_engine(target: EngineTarget) -> Engine:
    return Engine(
        address=target.url,
        project_id=target.project_id,
        model=target.model_name,
        version=target.version_name,
        environment=target.environment,
        gpu=target.gpu,
        host=urlsplit(target.url).hostname or "",
    )


def _describe_trouble(now: Snapshot, wanted: EngineFormat) -> str:
    if not now.absent:
        return ""
    if not now.own_names:
        return (
            f"The response has no metric that begins with {wanted.prefix}: check that this is "
            f"{wanted.engine}, with metrics enabled."
        )
    return (
        f"The response lacks {', '.join(now.absent)}: this release may have renamed metrics. "
        "Missing metrics are not counted."
    )
