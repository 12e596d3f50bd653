"""Registry of modules that the agent imports on first use, because most jobs need few of them."""

from __future__ import annotations

import importlib
from typing import Any

ANSWER_CHECK = "compilewatch.numerics.nan_check"
CACHE_CHECK = "compilewatch.cache_cli.check"
CACHE_LOOKUPS = "compilewatch.sources.inductor.cache_lookups"
CACHE_SAVE_LOAD = "compilewatch.cache_cli.save_load"
CLI_DOCTOR = "compilewatch.cli.doctor"
CLI_IMPORT_TRACE = "compilewatch.cli.import_trace"
CLI_REPLAY = "compilewatch.cli.replay"
CLI_RUN = "compilewatch.cli.run"
COMMANDS = "compilewatch.control.command_handler"
DEFERRED_INSTALL = "compilewatch.sources.deferred_install"
DYNAMO_SKIP = "compilewatch.instrument.dynamo_skip"
ED25519 = "compilewatch.wire.ed25519"
OTLP = "compilewatch.export.otlp"
REDACTION = "compilewatch.identity.redaction"
REPORTER = "compilewatch.reporter"
TLS = "compilewatch.export.http.tls"
TORCHSCRIPT_WARM_UP = "compilewatch.instrument.torchscript_warm_up"


def require(module: str) -> Any:
    """Imports one of these modules on the first call and returns it."""
    return importlib.import_module(module)
