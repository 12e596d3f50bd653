"""Registry of the agent's modules that are loaded when they are first needed: most jobs need few of them."""

from __future__ import annotations

import importlib
from typing import Any

ANSWER_CHECK = "compilewatch.numerics.nan_check"
COMMANDS = "compilewatch.control.command_handler"
DYNAMO_SKIP = "compilewatch.instrument.dynamo_skip"
DEFERRED_INSTALL = "compilewatch.sources.deferred_install"
CACHE_LOOKUPS = "compilewatch.sources.inductor.cache_lookups"
ED25519 = "compilewatch.wire.ed25519"
OTLP = "compilewatch.export.otlp"
REDACTION = "compilewatch.identity.redaction"
REPORTER = "compilewatch.reporter"
TLS = "compilewatch.export.http.tls"
TORCHSCRIPT_WARM_UP = "compilewatch.instrument.torchscript_warm_up"


def require(module: str) -> Any:
    """One of them; the first call imports it."""
    return importlib.import_module(module)
