"""Environment settings: the only reader of the dashboard's environment variables.

An error is one sentence that names the variable.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from django.http.request import validate_host

from dashboard.environment.groups import (
    HOST_PATTERN,
    Database,
    Mail,
    Oidc,
    extract_host,
    find_path_error,
    is_loopback,
    local_host,
    local_url,
    parse_database_url,
    parse_redis_url,
    read_mail,
    read_oidc,
)
from dashboard.environment.parsers import (
    SettingError,
    parse_port,
    parse_url,
    read_choice,
    read_flag,
    read_value_or_file,
)

__all__ = ["ROOT", "Env", "SettingError", "env_check", "env_read"]

ROOT = Path(__file__).resolve().parents[2]
BOOT_ERROR_EXIT_CODE = 3

APPRISE_SCHEMAS = ("tgram", "discord", "pover", "gchat", "opsgenie", "pagerduty")
"""Apprise schemas whose hosts are fixed and public, independent of the rest of the URL."""


@dataclass(frozen=True)
class Env:
    """Every setting of the dashboard, checked. docker/env.example explains each setting."""

    mode: str
    data: Path
    database: Database
    redis_url: str
    secret_key: str
    key_pepper: str
    hosts: tuple[str, ...]
    listen: str
    port: int
    base_url: str
    allow_http: bool
    outbound_allow: tuple[str, ...]
    mail: Mail | None
    apprise: tuple[str, ...]
    oidc: Oidc | None
    proxies: int
    concurrency: int
    log: str
    debug: bool

    @property
    def embedded(self) -> bool:
        """True if web and workers run in one process on SQLite without Redis."""
        return self.mode == "embedded"

    @property
    def prefix(self) -> str:
        """The path under which a proxy publishes the dashboard, such as /compilewatch; usually
        empty."""
        return urlsplit(self.base_url).path


def env_read(environ: Mapping[str, str] = os.environ) -> Env:
    """Reads and checks COMPILEWATCH_*. Raises SettingError with a sentence."""
    mode = read_choice(environ, "COMPILEWATCH_MODE", "embedded", ("embedded", "full"))
    data = Path(environ.get("COMPILEWATCH_DATA") or ROOT / ".var")
    listen, port = _listen(environ), _port(environ)
    secret_key, key_pepper = _read_keys(environ, mode, data)
    base_url = _base_url(environ, mode, local_url(listen, port))
    return Env(
        mode=mode,
        data=data,
        database=_database(environ, mode, data),
        redis_url=_redis(environ, mode),
        secret_key=secret_key,
        key_pepper=key_pepper,
        hosts=_hosts(environ, mode, local_host(listen), base_url),
        listen=listen,
        port=port,
        base_url=base_url,
        allow_http=read_flag(environ, "COMPILEWATCH_ALLOW_HTTP"),
        outbound_allow=_outbound_allow(environ),
        mail=read_mail(environ),
        apprise=_apprise(environ),
        oidc=read_oidc(environ),
        proxies=_read_proxies(environ),
        concurrency=_read_concurrency(environ),
        log=read_choice(environ, "COMPILEWATCH_LOG", "text", ("text", "json")),
        debug=read_flag(environ, "COMPILEWATCH_DEBUG"),
    )


def _read_keys(environ: Mapping[str, str], mode: str, data: Path) -> tuple[str, str]:
    """Reads the secret key and the key pepper, which must differ."""
    secret_key, key_pepper = (
        _secret(environ, name, mode, data)
        for name in ("COMPILEWATCH_SECRET_KEY", "COMPILEWATCH_KEY_PEPPER")
    )
    if secret_key == key_pepper:
        raise SettingError(
            "COMPILEWATCH_KEY_PEPPER equals COMPILEWATCH_SECRET_KEY, expected 32 or more other "
            "random characters."
        )
    return secret_key, key_pepper


def _apprise(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Reads the Apprise schemas. Only services with fixed public hosts are allowed: Apprise
    connects without the guard of the outbound client."""
    schemas = tuple(
        filter(None, (part.strip() for part in environ.get("COMPILEWATCH_APPRISE", "").split(",")))
    )
    for schema in schemas:
        if schema not in APPRISE_SCHEMAS:
            raise SettingError(
                f"COMPILEWATCH_APPRISE is {schema!r}, expected schemas out of "
                f"{', '.join(APPRISE_SCHEMAS)}."
            )
    return schemas


def _read_proxies(environ: Mapping[str, str]) -> int:
    name, what = (
        "COMPILEWATCH_TRUSTED_PROXIES",
        "the number of your proxies in front of the dashboard",
    )
    return _count(environ, name, "0", what, range(11))


def _read_concurrency(environ: Mapping[str, str]) -> int:
    name, what = "COMPILEWATCH_CONCURRENCY", "the number of concurrent tasks per worker"
    return _count(environ, name, "1", what, range(1, 65))


def _count(environ: Mapping[str, str], name: str, default: str, what: str, allowed: range) -> int:
    """Reads an integer from a small range."""
    text = environ.get(name) or default
    if not (text.isascii() and text.isdecimal() and len(text) <= 2 and int(text) in allowed):
        raise SettingError(f"{name} is {text!r}, expected {what}: {allowed[0]} to {allowed[-1]}.")
    return int(text)


def env_check() -> None:
    """Checks the settings for programs that do not start through manage.py.

    A wrong setting ends the process with one sentence and exit code 3, which gunicorn does not
    retry.
    """
    try:
        env_read()
    except SettingError as error:
        sys.stderr.write(f"compilewatch cannot start: {error}\n")
        raise SystemExit(BOOT_ERROR_EXIT_CODE) from error


def _listen(environ: Mapping[str, str]) -> str:
    """Reads an address of this machine without brackets, or a host name."""
    value = environ.get("COMPILEWATCH_LISTEN") or "127.0.0.1"
    if not set(value.lower()) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-:%_"):
        raise SettingError(
            f"COMPILEWATCH_LISTEN is {value!r}, expected an address such as 127.0.0.1, "
            "0.0.0.0, ::1 or :: (IPv6)."
        )
    return value


def _port(environ: Mapping[str, str]) -> int:
    return parse_port("COMPILEWATCH_PORT", environ.get("COMPILEWATCH_PORT") or "8000")


def _database(environ: Mapping[str, str], mode: str, data: Path) -> Database:
    url = read_value_or_file(environ, "COMPILEWATCH_DATABASE_URL")
    if not url:
        if mode == "full":
            raise SettingError(
                "COMPILEWATCH_DATABASE_URL is missing, expected "
                "postgresql://user:password@host:5432/name."
            )
        return Database("sqlite", str(data / "compilewatch.sqlite3"))
    database = parse_database_url(url)
    if database.engine == "sqlite" and mode == "full":
        raise SettingError(
            "COMPILEWATCH_DATABASE_URL is SQLite, which supports a single writing process; full "
            "mode requires postgresql://."
        )
    return database


def _redis(environ: Mapping[str, str], mode: str) -> str:
    return (
        ""
        if mode == "embedded"
        else parse_redis_url(read_value_or_file(environ, "COMPILEWATCH_REDIS_URL").strip())
    )


def _secret(environ: Mapping[str, str], name: str, mode: str, data: Path) -> str:
    """Reads a secret from the variable or from NAME_FILE. Embedded mode generates a file if both
    are missing."""
    value = read_value_or_file(environ, name)
    if not value and mode == "embedded":
        value = _read_or_create_secret(data / f"{name.removeprefix('COMPILEWATCH_').lower()}.txt")
    if len(value.strip()) < 32:
        raise SettingError(
            f"{name} is missing or shorter than 32 characters; generate one with `openssl rand "
            "-base64 48`."
        )
    return value


def _read_or_create_secret(path: Path) -> str:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return path.read_text().strip()
        with os.fdopen(handle, "w") as file:
            value = secrets.token_urlsafe(48)
            file.write(value)
        return value
    except OSError as error:
        raise SettingError(
            f"COMPILEWATCH_DATA: {path.parent} cannot be written: {error.strerror}."
        ) from error


def _hosts(environ: Mapping[str, str], mode: str, own: str, base_url: str) -> tuple[str, ...]:
    """Reads the accepted host names, which must include the host of the base URL: every link
    contains that host."""
    given = tuple(
        host.strip() for host in environ.get("COMPILEWATCH_HOSTS", "").split(",") if host.strip()
    )
    for host in given:
        if not HOST_PATTERN.fullmatch(host):
            raise SettingError(
                f"COMPILEWATCH_HOSTS has the entry {host!r}, expected names without scheme "
                "or port; IPv6 in brackets."
            )
    linked = extract_host(base_url)
    if given and environ.get("COMPILEWATCH_BASE_URL") and not validate_host(linked, given):
        raise SettingError(
            f"COMPILEWATCH_HOSTS lacks {linked!r}, the host of COMPILEWATCH_BASE_URL: links would "
            "be refused."
        )
    if given:
        return given
    if mode == "full":
        raise SettingError(
            "COMPILEWATCH_HOSTS is missing, expected the names people and agents use, such "
            "as compilewatch.example.com."
        )
    return tuple(dict.fromkeys(("127.0.0.1", "localhost", "[::1]", own, linked)))


def _base_url(environ: Mapping[str, str], mode: str, here: str) -> str:
    url = environ.get("COMPILEWATCH_BASE_URL") or ("" if mode == "full" else here)
    parts = parse_url(url)
    if (
        not parts
        or parts.scheme not in ("http", "https")
        or "@" in parts.netloc
        or parts.query
        or parts.fragment
        or not _extract_safe_host(url)
    ):
        raise SettingError(
            "COMPILEWATCH_BASE_URL is missing or not valid, expected "
            "https://compilewatch.example.com."
        )
    if trouble := find_path_error(parts.path.rstrip("/")):
        raise SettingError(
            f"COMPILEWATCH_BASE_URL {trouble}, expected https://ops.example.com/compilewatch."
        )
    open_to_others = (
        parts.scheme == "http" and mode == "full" and not is_loopback(parts.hostname or "")
    )
    if open_to_others and not read_flag(environ, "COMPILEWATCH_ALLOW_HTTP"):
        raise SettingError(
            "COMPILEWATCH_BASE_URL is plain http, which agents refuse; expected https, or also "
            "COMPILEWATCH_ALLOW_HTTP=1."
        )
    return url.rstrip("/")


def _extract_safe_host(url: str) -> str:
    """The host of a URL for the Host header. Empty if the URL contains whitespace, which Python
    would remove silently."""
    return "" if any(sign.isspace() for sign in url) else extract_host(url)


def _outbound_allow(environ: Mapping[str, str]) -> tuple[str, ...]:
    entries = tuple(
        entry.strip()
        for entry in environ.get("COMPILEWATCH_OUTBOUND_ALLOW", "").split(",")
        if entry.strip()
    )
    for entry in entries:
        parts = parse_url(f"//{entry}")
        if not parts or not parts.hostname or not parts.port or parts.netloc != entry:
            raise SettingError(
                f"COMPILEWATCH_OUTBOUND_ALLOW has the entry {entry!r}, expected host:port."
            )
    return entries
