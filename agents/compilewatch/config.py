"""Settings: validated once and frozen; the only reader of COMPILEWATCH_* environment variables.

Arguments of `init` take precedence over environment variables, and those over defaults. A wrong
setting raises a ConfigError with one sentence for the user; the agent then stays off, and the job
runs. Error texts never repeat a key, a file name given for a key, or a proxy address, because they
may hold secrets.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from urllib.parse import urlsplit

from compilewatch.errors import ConfigError
from compilewatch.lazy_modules import ED25519, require
from compilewatch.wire.messages import MAX_TEXT

KINDS = ("serving", "training")
REDACTIONS = ("", "strict")
REMOTE_VERBS = ("freeze", "eager")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
MIN_INTERVAL_SECONDS, MAX_INTERVAL_SECONDS = 0.05, 300.0
KEYS = ("api_key", "command_key")
"""Keys that can be given directly, or as the name of the file that holds the key."""
MAX_KEY_FILE_BYTES = 4096
"""Maximum number of bytes read from a key file; a key with surrounding white space is smaller."""
_PUBLIC_KEY = re.compile(r"[0-9a-f]{64}")
_COMMAND_KEY = re.compile(r"cw_cmd_[0-9A-Za-z]{8}_[0-9A-Za-z]{43,}", re.ASCII)


@dataclass(frozen=True)
class Config:
    """The settings of `init`, completed from the environment."""

    model: str
    endpoint: str
    """Destination of reports: http(s)://host[:port][/path], or file:PATH to record them.

    otlp:http(s)://host[:port][/path] sends to an OpenTelemetry collector.
    """
    api_key: str = field(default="", repr=False)
    api_key_file: str = ""
    """File that holds the key, instead of `api_key`; only `init` reads it."""
    version: str = ""
    """Empty: the commit or image tag from the environment, else `unversioned`."""
    environment: str = "production"
    kind: str = "serving"
    """`serving` or `training`."""
    stage: str = ""
    """The part of the model on this rank, if ranks run different parts on purpose, such as pipeline
    stages.
    """
    instance: str = ""
    """The operator's name for this process; empty: the names that its pod and its framework use."""
    node: str = ""
    """The machine under this host, such as the Kubernetes node of a pod, so that pods with new
    names are compared with earlier pods on the node; empty: the host.
    """
    interval: float = 10.0
    """Length of a window in seconds.

    Shorten it only for tests and demonstrations: each window costs a request.
    """
    allow_http: bool = False
    """Allows sending the key over plain http to another machine on a trusted network."""
    redact: str = ""
    """`strict`: sends only a fingerprint of every text that comes from the job or its code."""
    proxy: str = ""
    """Proxy for requests, http://[user:password@]host:port.

    Proxies of the environment are ignored.
    """
    spool: str = ""
    """Folder for closed windows until they are acknowledged, or `off`; empty: a folder in the
    user's cache folder.
    """
    allow_remote: tuple[str, ...] = ()
    """Commands that the dashboard may send to this process: `freeze`, `eager`, both or none."""
    command_public_key: str = field(default="", repr=False)
    """Public key that verifies commands: 64 hexadecimal digits, as on the Setup page.

    With it, no other key counts.
    """
    command_key: str = field(default="", repr=False)
    """Shared key that verifies commands if there is no public key, in this release only; the Setup
    page shows it once.
    """
    command_key_file: str = ""
    """File that holds the key, instead of `command_key`."""
    finite: bool = False
    """Checks the answers of all regions watched after `init` for NaN and infinite values."""
    simulated: bool = False
    """Marks all data of this process as simulated."""

    @property
    def file(self) -> str | None:
        """Path of the file that reports are recorded to; None if they are sent."""
        return self.endpoint[len("file:") :] if self.endpoint.startswith("file:") else None

    @property
    def otlp(self) -> str | None:
        """Base address for OpenTelemetry metrics; None if reports go to a dashboard."""
        return self.endpoint[len("otlp:") :] if self.endpoint.startswith("otlp:") else None


def is_endpoint_set(environ: Mapping[str, str] | None = None) -> bool:
    """Returns whether the environment sets an endpoint."""
    return bool((os.environ if environ is None else environ).get("COMPILEWATCH_ENDPOINT"))


def load(
    given: Mapping[str, object], environ: Mapping[str, str] | None = None, *, model: str = ""
) -> Config:
    """Loads the settings from `given`, then COMPILEWATCH_* variables, then defaults including
    `model`; raises a ConfigError with one sentence.
    """
    environ = os.environ if environ is None else environ
    values: dict[str, object] = {"model": model, "endpoint": ""}
    names = {field.name for field in fields(Config)}
    for name in given:
        if name not in names:
            raise ConfigError(
                f"off: init() has no setting {name!r}; it has {', '.join(sorted(names))}"
            )
    passed = {name for name in names if given.get(name) is not None}
    for name in names:
        if name in passed:
            values[name] = _convert(name, given[name], f"init({name}=...)")
        elif environ.get(_variable(name)) and _alternative(name) not in passed:
            values[name] = _convert(name, environ[_variable(name)], _variable(name))
    for key in KEYS:
        if values.get(f"{key}_file"):
            values[key] = _key_in_file(key, values, passed)
    return _check(Config(**values))  # type: ignore[arg-type]


def _variable(name: str) -> str:
    return f"COMPILEWATCH_{name.upper()}"


def _alternative(name: str) -> str:
    """Returns the other setting of the same key.

    A key passed to `init` in either form overrides both environment variables.
    """
    return name.removesuffix("_file") if name.endswith("_file") else f"{name}_file"


def _key_in_file(key: str, values: Mapping[str, object], passed: set[str]) -> str:
    """Reads a key from its file.

    Error texts repeat neither the key nor the file name, because a user may have set the key as the
    file name.
    """
    own, place = [
        f"init({name}=...)" if name in passed else _variable(name) for name in (key, f"{key}_file")
    ]
    if values.get(key):
        raise ConfigError(f"off: {own} and {place} are both set; set only one of them")
    try:
        text = _read_text(str(values[f"{key}_file"]))
    except (OSError, ValueError) as error:
        why = (
            (error.strerror or type(error).__name__)
            if isinstance(error, OSError)
            else "the file name is invalid"
        )
        raise ConfigError(f"off: the file named by {place} cannot be read: {why}") from None
    if not text:
        raise ConfigError(f"off: the file named by {place} is empty")
    return str(_convert(key, text, f"the content of the file named by {place}"))


def _read_text(path: str) -> str:
    """Reads the beginning of a regular file and strips white space.

    Other files, such as pipes, could block the job. Raises OSError or ValueError.
    """
    if not stat.S_ISREG(Path(path).stat().st_mode):
        raise OSError(0, "not a regular file")
    with Path(path).open("rb") as file:
        return file.read(MAX_KEY_FILE_BYTES).decode("utf-8", "replace").strip()


def _convert(name: str, value: object, where: str) -> object:
    if name == "interval":
        return _interval(value, where)
    if name in ("allow_http", "finite", "simulated"):
        return _flag(value, where)
    if name == "allow_remote":
        return _verbs(value, where)
    if not isinstance(value, str):
        raise ConfigError(f"off: {where} must be text, got {type(value).__name__}")
    if len(value) > MAX_TEXT:
        raise ConfigError(f"off: {where} is longer than {MAX_TEXT} characters")
    return value.strip().lower() if name == "command_public_key" else value.strip()


def _interval(value: object, where: str) -> float:
    try:
        seconds = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ConfigError(f"off: {where} must be a number of seconds, got {value!r:.50}") from None
    if not math.isfinite(seconds) or not MIN_INTERVAL_SECONDS <= seconds <= MAX_INTERVAL_SECONDS:
        raise ConfigError(
            f"off: {where} must be between {MIN_INTERVAL_SECONDS} and "
            f"{MAX_INTERVAL_SECONDS:.0f} seconds, got {seconds}"
        )
    return seconds


def _verbs(value: object, where: str) -> tuple[str, ...]:
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, (tuple, list, set, frozenset)) or not all(
        isinstance(word, str) for word in words
    ):
        raise ConfigError(f"off: {where} must name {' and '.join(REMOTE_VERBS)}, got {value!r:.50}")
    asked = {word.strip() for word in words} - {""}
    unknown = asked - set(REMOTE_VERBS)
    if unknown:
        raise ConfigError(
            f"off: {where} must name {' and '.join(REMOTE_VERBS)}, got {min(unknown)!r:.50}"
        )
    return tuple(word for word in REMOTE_VERBS if word in asked)


def _flag(value: object, where: str) -> bool:
    text = str(value).strip().lower()
    if text in ("1", "true", "yes", "on"):
        return True
    if text in ("", "0", "false", "no", "off"):
        return False
    raise ConfigError(f"off: {where} must be 1 or 0, got {value!r:.50}")


def _check(config: Config) -> Config:
    if not config.endpoint:
        raise ConfigError("off: no endpoint; pass init(endpoint=...) or set COMPILEWATCH_ENDPOINT")
    if not config.model:
        raise ConfigError("off: no model name; pass init(model=...) or set COMPILEWATCH_MODEL")
    if config.kind not in KINDS:
        raise ConfigError(f"off: kind must be {' or '.join(KINDS)}, got {config.kind!r:.50}")
    if config.redact not in REDACTIONS:
        raise ConfigError(f"off: redact must be strict or empty, got {config.redact!r:.50}")
    if config.spool not in ("", "off") and not Path(config.spool).is_absolute():
        raise ConfigError(
            f"off: COMPILEWATCH_SPOOL must be off or an absolute path, got {config.spool!r:.50}"
        )
    if config.allow_remote:
        _command_keys_check(config)
    if config.file is None:
        # A collector may accept metrics without a key; then no key can leak.
        free = config.otlp is not None and not config.api_key
        endpoint_check(
            config.otlp or config.endpoint,
            "none" if free else config.api_key,
            config.allow_http or free,
            config.proxy,
        )
    elif not config.file:
        raise ConfigError("off: the endpoint file: needs a path, as in file:/tmp/reports.jsonl")
    return config


def _command_keys_check(config: Config) -> None:
    # No key is repeated: the user may have set the shared key, a secret, in place of the public
    # key.
    if not config.command_public_key:
        if not _COMMAND_KEY.fullmatch(config.command_key):
            raise ConfigError(
                "off: COMPILEWATCH_ALLOW_REMOTE needs the project's public key in "
                "COMPILEWATCH_COMMAND_PUBLIC_KEY"
            )
        return
    wrong = (
        "off: COMPILEWATCH_COMMAND_PUBLIC_KEY must be the 64 hexadecimal digits "
        "that the Setup page shows, got"
    )
    if not _PUBLIC_KEY.fullmatch(config.command_public_key):
        raise ConfigError(f"{wrong} another text of {len(config.command_public_key)} characters")
    try:
        require(ED25519).PublicKey(bytes.fromhex(config.command_public_key))
    except ValueError as error:
        raise ConfigError(f"{wrong} {error}") from None


def endpoint_check(endpoint: str, api_key: str, allow_http: bool, proxy: str = "") -> None:
    """Raises a ConfigError unless reports can be sent to this endpoint with this key and proxy."""
    try:
        parts = urlsplit(endpoint)
        host, _port = parts.hostname, parts.port
    except ValueError:
        raise ConfigError(f"off: the endpoint {endpoint!r:.100} is not an address") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(
            "off: the endpoint must be http(s)://host[:port], the same after otlp:, or file:PATH, "
            f"got {endpoint!r:.100}"
        )
    if parts.username or parts.query or parts.fragment:
        raise ConfigError(
            "off: the endpoint must not hold a user, a query or a fragment; the key belongs in "
            "COMPILEWATCH_API_KEY"
        )
    if not api_key:
        raise ConfigError("off: no key; pass init(api_key=...) or set COMPILEWATCH_API_KEY")
    if not (api_key.isascii() and api_key.isprintable() and " " not in api_key):
        raise ConfigError(
            "off: the key contains invalid characters; copy it again from the Setup page"
        )
    if parts.scheme == "http" and (host not in LOOPBACK or proxy) and not allow_http:
        raise ConfigError(
            "off: the key would be sent over plain http; use https, or set "
            "COMPILEWATCH_ALLOW_HTTP=1 on a trusted network"
        )
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
    if (
        parts.scheme != "http"
        or not host
        or not port
        or parts.path.strip("/")
        or parts.query
        or parts.fragment
    ):
        raise wrong
