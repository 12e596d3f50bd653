"""Sentry and OpenTelemetry, only where their packages are installed and their own standard
variables say where to send."""

from __future__ import annotations

import logging
import os
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from django.conf import settings

from dashboard.common.log_formatters import redact_secrets

logger = logging.getLogger(__name__)


def telemetry_start(environ: dict[str, str] | None = None) -> list[str]:
    """Starts what is asked for, and returns its names; what is asked for but not installed is said
    once."""
    given = os.environ if environ is None else environ
    started = []
    if given.get("SENTRY_DSN"):
        started += _start_if_installed("sentry_sdk", _sentry)
    if (
        given.get("OTEL_EXPORTER_OTLP_ENDPOINT")
        and given.get("OTEL_SDK_DISABLED", "").lower() != "true"
    ):
        started += _start_if_installed("opentelemetry.instrumentation.django", _opentelemetry)
    return started


def _start_if_installed(package: str, start: Any) -> list[str]:
    if not _is_installed(package):
        logger.warning(
            "%s is configured by its variables, but not installed: nothing is sent.", package
        )
        return []
    start(import_module(package))
    return [package]


def _is_installed(package: str) -> bool:
    """Asking for a part of a package that is not there is an error of its own."""
    parts = package.split(".")
    return all(find_spec(".".join(parts[: place + 1])) is not None for place in range(len(parts)))


def _sentry(package: Any) -> None:
    """Its variables say where and how much; no bodies, cookies, addresses or values of variables,
    and every text without secrets."""
    package.init(
        send_default_pii=False,
        max_request_body_size="never",
        include_local_variables=False,
        before_send=_redact_event,
        before_send_transaction=_redact_event,
        before_breadcrumb=_redact_event,
    )


def _opentelemetry(package: Any) -> None:
    """Requests become spans, sent as the variables of the exporter say; a provider that somebody
    has set up stays."""
    trace, sdk = import_module("opentelemetry.trace"), import_module("opentelemetry.sdk.trace")
    if not isinstance(trace.get_tracer_provider(), sdk.TracerProvider):
        exporter = import_module(
            "opentelemetry.exporter.otlp.proto.http.trace_exporter"
        ).OTLPSpanExporter()
        provider = sdk.TracerProvider()
        provider.add_span_processor(
            import_module("opentelemetry.sdk.trace.export").BatchSpanProcessor(exporter)
        )
        trace.set_tracer_provider(provider)
    # It asks for the name in the request: first of all, it would refuse probes, which come by
    # address.
    place = settings.MIDDLEWARE.index("dashboard.common.probe_hosts.ProbeHostMiddleware") + 1
    package.DjangoInstrumentor().instrument(
        request_hook=_redact_span, response_hook=_redact_span, middleware_position=place
    )


def _redact_span(span: Any, *_: Any) -> None:
    """Addresses hold what lets in: a link of an invitation, a provider's answer."""
    for name, value in dict(getattr(span, "attributes", None) or {}).items():
        if isinstance(value, str) and (clean := redact_secrets(value)) != value:
            span.set_attribute(name, clean)


def _redact_event(event: Any, hint: Any) -> Any:
    if isinstance(event, dict):
        return {name: _redact_event(value, hint) for name, value in event.items()}
    if isinstance(event, list | tuple):
        return [_redact_event(value, hint) for value in event]
    return redact_secrets(event) if isinstance(event, str) else event
