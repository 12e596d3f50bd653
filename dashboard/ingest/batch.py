"""Batch decoder: turns the JSON of a request into a batch that can be stored. Every report is
decoded and checked; a bad report is refused alone. Pure code."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

import msgspec
from compilewatch.wire.ack import Rejected
from compilewatch.wire.clip import clip
from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import ACCEPTED_VERSIONS, MAX_REPORTS, Identity, Report, SeqRange

from dashboard.common.unicode_safety import visible_name
from dashboard.ingest.body_decoder import RefusalError, holds_nul, text_check
from dashboard.ingest.recent_digests import ReportDigest, digest_report
from dashboard.ingest.validation import (
    MAX_UNIX_TIME_S,
    InvalidReport,
    identity_check,
    length_check,
    report_check,
    seq_check,
    window_check,
)

SHARDS = 64
MAX_NAME = 200
MAX_ENVIRONMENT = 64
UNREADABLE_SEQ: SeqRange = (0, 0)

T = TypeVar("T")


class _Envelope(msgspec.Struct):
    """The outermost object. Its parts stay text, because another version may use other types."""

    v: Any = None
    sent: Any = None
    instance: msgspec.Raw = msgspec.Raw()
    reports: msgspec.Raw = msgspec.Raw()


class _SeqEnvelope(msgspec.Struct):
    """The sequence range of a bad report, which identifies the report."""

    seq: tuple[int, int]


# Created while one thread imports this module: msgspec crashes when two threads see a type for the
# first time at once.
_ENVELOPE = msgspec.json.Decoder(_Envelope)
_SEQ_ENVELOPE = msgspec.json.Decoder(_SeqEnvelope)
_RAW_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_IDENTITY = msgspec.json.Decoder(Identity)
_REPORT = msgspec.json.Decoder(Report)


@dataclass(slots=True)
class ReportItem:
    """A good report as JSON text. An old report is acknowledged only if it was stored before."""

    seq: SeqRange
    text: bytes
    too_old: bool
    end: float
    """End of the report's window, by the agent's clock."""

    @property
    def recorded(self) -> ReportDigest:
        """The digest that the sender's row keeps of the report."""
        return digest_report(self.seq, self.text, self.end)


@dataclass(slots=True)
class Batch:
    """One request: its sender, its good reports, and its refused reports."""

    project_id: int
    instance_id: str
    model: str
    version: str
    identity: bytes
    received: float
    clock_offset: float
    items: list[ReportItem] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    environment: str = ""
    job: str = ""

    @property
    def is_continuous(self) -> bool:
        """True if all reports are new by age and each one begins where the previous one ended."""
        items = self.items
        return (
            bool(items)
            and not any(item.too_old for item in items)
            and all(after.seq[0] == before.seq[1] + 1 for before, after in pairwise(items))
        )

    @property
    def shard(self) -> int:
        """The inbox shard of this batch. All reports of a version share one shard."""
        return compute_shard(self.project_id, self.model, self.version)


def compute_shard(project_id: int, model: str, version: str) -> int:
    """The shard of a version; the same in every process and release."""
    return zlib.crc32(f"{project_id}\0{model}\0{version}".encode()) % SHARDS


def identity_read(text: bytes) -> Identity:
    """The identity in stored JSON text. Its names are made visible and cut to the widths of their
    columns."""
    identity = _IDENTITY.decode(text)
    identity.model = clip(visible_name(identity.model), MAX_NAME)
    identity.version = clip(visible_name(identity.version), MAX_NAME)
    identity.environment = clip(visible_name(identity.environment), MAX_ENVIRONMENT)
    return identity


def report_read(text: bytes) -> Report:
    """The report in stored JSON text."""
    return _REPORT.decode(text)


def batch_read(*, text: bytes, project_id: int, received: float) -> Batch:
    """The batch in the JSON of a request. Raises RefusalError if the request as a whole is
    invalid."""
    cut = text_check(text)
    envelope = _decode(text, _ENVELOPE, "")
    _check_version(envelope.v)
    offset = received - _read_sent(envelope.sent)
    identity, identity_text = _read_identity(envelope.instance, cut)
    raw_reports = _decode(envelope.reports, _RAW_LIST, "reports")
    if len(raw_reports) > MAX_REPORTS:
        raise RefusalError(
            "bad_request", f"reports: expected at most {MAX_REPORTS}, got {len(raw_reports)}."
        )
    batch = Batch(
        project_id, identity.id, identity.model, identity.version, identity_text, received, offset
    )
    batch.environment, batch.job = identity.environment, identity.job
    for raw in raw_reports:
        try:
            batch.items.append(_read_item(bytes(raw), cut, offset, received))
        except InvalidReport as wrong:
            batch.rejected.append(Rejected(_read_seq(raw), wrong.code, clip(str(wrong))))
    return batch


def _check_version(version: Any) -> None:
    if isinstance(version, bool) or not isinstance(version, int):
        raise RefusalError("bad_request", "v: expected the protocol version, a whole number.")
    if version not in ACCEPTED_VERSIONS:
        raise RefusalError(
            "wrong_version",
            f"v: this server accepts {' and '.join(map(str, ACCEPTED_VERSIONS))}, got {version}.",
        )


def _read_sent(sent: Any) -> float:
    if (
        isinstance(sent, bool)
        or not isinstance(sent, (int, float))
        or not 0 <= sent <= MAX_UNIX_TIME_S
    ):
        raise RefusalError("bad_request", "sent: expected Unix seconds.")
    return float(sent)


def _read_identity(raw: msgspec.Raw, cut: bool) -> tuple[Identity, bytes]:
    text = bytes(raw)
    if not text:
        raise RefusalError("bad_request", "instance: missing.")
    if holds_nul(text):
        raise RefusalError("bad_request", "instance: a text contains the character U+0000")
    try:
        identity = identity_read(text)
        identity_check(identity)
    except (msgspec.MsgspecError, InvalidReport) as error:
        raise RefusalError(
            "bad_request",
            f"{error}." if isinstance(error, InvalidReport) else _format_error(error, "instance"),
        ) from None
    return identity, dumps(identity) if cut else text


def _read_item(text: bytes, cut: bool, offset: float, now: float) -> ReportItem:
    if holds_nul(text):
        raise InvalidReport("invalid_report", "a text contains the character U+0000")
    try:
        report = report_read(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidReport("invalid_report", _format_error(error, "")) from None
    seq_check(report.seq)
    fresh = window_check(report.window, offset, now)
    length_check(report)
    report_check(report)
    return ReportItem(report.seq, dumps(report) if cut else text, not fresh, report.window[1])


def _read_seq(raw: msgspec.Raw) -> SeqRange:
    try:
        return _SEQ_ENVELOPE.decode(raw).seq
    except msgspec.MsgspecError:
        return UNREADABLE_SEQ


def _decode(text: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T], where: str) -> T:
    if where and not bytes(text):
        raise RefusalError("bad_request", f"{where}: missing.")
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        raise RefusalError("bad_request", _format_error(error, where)) from None
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RefusalError("not_json", f"The body is not JSON: {error}.") from None


def _format_error(error: Exception, where: str) -> str:
    """Formats an error of msgspec, which reads `Expected ... - at `$.a.b``, in the form of the
    wire: the field first."""
    problem, _, path = str(error).partition(" - at ")
    field_path = f"{where}{path.strip('`').removeprefix('$')}".lstrip(".")
    return (
        f"{field_path or 'the message'}: {problem[:1].lower()}{problem[1:]}"
        if path or where
        else str(error)
    )


@dataclass(slots=True)
class StoreResult:
    """The ranges to acknowledge, the number after the highest one, and the permanent refusals.
    `held` lists all durable ranges of the sender; None if no number below the next one is missing.
    """

    acked: list[SeqRange]
    next_seq: int
    rejected: list[Rejected]
    held: list[SeqRange] | None = None
