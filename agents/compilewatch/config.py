"""The settings, checked once and frozen; the only reader of COMPILEWATCH_* environment variables."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from urllib.parse import urlsplit

from compilewatch.errors import ConfigError
from compilewatch.wire.report import MAX_TEXT

KINDS = ("serving", "training")
REDACTIONS = ("", "strict")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
MIN_INTERVAL, MAX_INTERVAL = 0.05, 300.0


@dataclass(frozen=True)
class Config:
    """What `init` was told, completed from the environment."""

    model: str
    endpoint: str
    """Where reports go: http(s)://host[:port][/path], or file:PATH to record them."""
    api_key: str = ""
    version: str = ""
    """Empty: taken from the commit or the image tag in the environment, else `unversioned`."""
    environment: str = "production"
    kind: str = "serving"
    """`serving` or `training`."""
    interval: float = 10.0
    """Seconds of a window. Shorten it for tests and demonstrations only: each window costs a request."""
    allow_http: bool = False
    """Lets the key travel over plain http to another machine, on a network that is trusted."""
    redact: str = ""
    """`strict`: of every text that the job or its code has a part in, only a fingerprint is sent."""
    proxy: str = ""
    """http://[user:password@]host:port of the proxy that requests go through; proxies of the environment are not used."""
    spool: str = ""
    """The folder in which closed windows are kept until they are acknowledged, or `off`; empty: one in the user's cache folder."""
    simulated: bool = False
    """Marks everything from this process as simulated."""

    @property
    def file(self) -> str | None:
        """The path that reports are recorded to, or None if they are sent."""
        return self.endpoint[len("file:") :] if self.endpoint.startswith("file:") else None


def load(given: Mapping[str, object], environ: Mapping[str, str] | None = None, *, model: str = "") -> Config:
    """The settings from `given`, then from COMPILEWATCH_* variables, then the defaults, `model` among them; raises a ConfigError with one
    sentence."""
    environ = os.environ if environ is None else environ
    values: dict[str, object] = {"model": model, "endpoint": ""}
    known = {field.name for field in fields(Config)}
    for name in given:
        if name not in known:
            raise ConfigError(f"off: init() has no setting {name!r}; it has {', '.join(sorted(known))}")
    for name in known:
        variable = f"COMPILEWATCH_{name.upper()}"
        if given.get(name) is not None:
            values[name] = _typed(name, given[name], f"init({name}=...)")
        elif environ.get(variable):
            values[name] = _typed(name, environ[variable], variable)
    return _checked(Config(**values))  # type: ignore[arg-type]


def _typed(name: str, value: object, where: str) -> object:
    if name == "interval":
        return _interval(value, where)
    if name in ("allow_http", "simulated"):
        return _flag(value, where)
    if not isinstance(value, str):
        raise ConfigError(f"off: {where} must be text, got {type(value).__name__}")
    if len(value) > MAX_TEXT:
        raise ConfigError(f"off: {where} is longer than {MAX_TEXT} characters")
    return value.strip()


def _interval(value: object, where: str) -> float:
    try:
        seconds = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ConfigError(f"off: {where} must be a number of seconds, got {value!r:.50}") from None
    if not math.isfinite(seconds) or not MIN_INTERVAL <= seconds <= MAX_INTERVAL:
        raise ConfigError(f"off: {where} must be between {MIN_INTERVAL} and {MAX_INTERVAL:.0f} seconds, got {seconds}")
    return seconds


def _flag(value: object, where: str) -> bool:
    text = str(value).strip().lower()
    if text in ("1", "true", "yes", "on"):
        return True
    if text in ("", "0", "false", "no", "off"):
        return False
    raise ConfigError(f"off: {where} must be 1 or 0, got {value!r:.50}")


def _checked(config: Config) -> Config:
    if not config.endpoint:
        raise ConfigError("off: no endpoint; pass init(endpoint=...) or set COMPILEWATCH_ENDPOINT")
    if not config.model:
        raise ConfigError("off: no model name; pass init(model=...) or set COMPILEWATCH_MODEL")
    if config.kind not in KINDS:
        raise ConfigError(f"off: kind must be {' or '.join(KINDS)}, got {config.kind!r:.50}")
    if config.redact not in REDACTIONS:
        raise ConfigError(f"off: redact must be strict or empty, got {config.redact!r:.50}")
    if config.spool not in ("", "off") and not Path(config.spool).is_absolute():
        raise ConfigError(f"off: COMPILEWATCH_SPOOL must be off or a folder that begins with /, got {config.spool!r:.50}")
    if config.file is None:
        endpoint_check(config.endpoint, config.api_key, config.allow_http, config.proxy)
    elif not config.file:
        raise ConfigError("off: the endpoint file: needs a path, as in file:/tmp/reports.jsonl")
    return config


def endpoint_check(endpoint: str, api_key: str, allow_http: bool, proxy: str = "") -> None:
    """Raises a ConfigError unless reports may be sent there with this key, and through this proxy."""
    try:
        parts = urlsplit(endpoint)
        host, _port = parts.hostname, parts.port
    except ValueError:
        raise ConfigError(f"off: the endpoint {endpoint!r:.100} is not an address") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(f"off: the endpoint must be http(s)://host[:port] or file:PATH, got {endpoint!r:.100}")
    if parts.username or parts.query or parts.fragment:
        raise ConfigError("off: the endpoint must not hold a user, a query or a fragment; the key belongs in COMPILEWATCH_API_KEY")
    if not api_key:
        raise ConfigError("off: no key; pass init(api_key=...) or set COMPILEWATCH_API_KEY")
    if not (api_key.isascii() and api_key.isprintable() and " " not in api_key):
        raise ConfigError("off: the key holds characters that no key has; copy it again from the Setup page")
    if parts.scheme == "http" and (host not in LOOPBACK or proxy) and not allow_http:
        raise ConfigError("off: the key would travel over plain http; use https, or set COMPILEWATCH_ALLOW_HTTP=1 on a trusted network")
    if proxy:
        _proxy_check(proxy)


def _proxy_check(proxy: str) -> None:
    # The text is not repeated: it may hold a password.
    wrong = ConfigError("off: COMPILEWATCH_PROXY must be http://[user:password@]host:port")
    try:
        parts = urlsplit(proxy)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise wrong from None
    if parts.scheme != "http" or not host or not port or parts.path.strip("/") or parts.query or parts.fragment:
        raise wrong
