"""Telemetry: Sentry and OpenTelemetry, if installed and configured by their standard variables."""

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
    """Starts the configured packages and returns their names. Logs each configured package that is
    not installed."""
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
            "%s is configured by environment variables but not installed: no telemetry is "
            "sent. Install the package or remove the variables.",
            package,
        )
        return []
    start(import_module(package))
    return [package]


def _is_installed(package: str) -> bool:
    """True if the package is installed. `find_spec` raises for a part of a missing package, so each
    level is checked."""
    parts = package.split(".")
    return all(find_spec(".".join(parts[: place + 1])) is not None for place in range(len(parts)))


def _sentry(package: Any) -> None:
    """Starts Sentry, configured by its variables.

    Events contain no bodies, cookies, addresses or local variables, and every text is redacted.
    """
    package.init(
        send_default_pii=False,
        max_request_body_size="never",
        include_local_variables=False,
        before_send=_redact_event,
        before_send_transaction=_redact_event,
        before_breadcrumb=_redact_event,
    )


def _opentelemetry(package: Any) -> None:
    """Turns requests into spans, exported as the variables of the exporter specify. An existing
    provider is kept."""
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
    # The instrumentation reads the host name of the request. In first place it would refuse probes,
    # which address the server by IP.
    place = settings.MIDDLEWARE.index("dashboard.common.probe_hosts.ProbeHostMiddleware") + 1
    package.DjangoInstrumentor().instrument(
        request_hook=_redact_span, response_hook=_redact_span, middleware_position=place
    )


def _redact_span(span: Any, *_: Any) -> None:
    """Redacts attributes: URLs may contain secrets, such as an invitation or a provider's
    answer."""
    for name, value in dict(getattr(span, "attributes", None) or {}).items():
        if isinstance(value, str) and (clean := redact_secrets(value)) != value:
            span.set_attribute(name, clean)


def _redact_event(event: Any, hint: Any) -> Any:
    if isinstance(event, dict):
        return {name: _redact_event(value, hint) for name, value in event.items()}
    if isinstance(event, list | tuple):
        return [_redact_event(value, hint) for value in event]
    return redact_secrets(event) if isinstance(event, str) else event
