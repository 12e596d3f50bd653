"""Setting groups: settings of several variables each, for database, Redis, mail, sign-in provider
and base URL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from dashboard.environment.parsers import (
    SettingError,
    parse_port,
    parse_url,
    read_choice,
    read_value_or_file,
)

RESERVED_PATHS = frozenset(
    (
        "account",
        "accounts",
        "admin",
        "api",
        "favicon.ico",
        "health",
        "healthz",
        "help",
        "invitations",
        "metrics",
        "numbers",
        "p",
        "projects",
        "readyz",
        "static",
        "ui",
    )
)
"""First path segments of the dashboard itself. A prefix that starts with one of these would be
ambiguous: the server could not see whether a proxy had removed the prefix."""


HOST_PATTERN = re.compile(r"\*|\.?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\]")
"""Pattern of a host name in a Host header, without the port. A leading dot matches every subdomain,
and * matches any name."""

DATABASE_OPTIONS = (
    *(
        "sslmode",
        "sslrootcert",
        "sslcert",
        "sslkey",
        "sslcrl",
        "sslnegotiation",
        "channel_binding",
        "gssencmode",
    ),
    "target_session_attrs",
)
"""Query options of a PostgreSQL URL, passed to libpq unchanged."""
SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


REDIS_OPTIONS = ("ssl_cert_reqs", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
"""Query options of a rediss:// URL."""


@dataclass(frozen=True)
class Database:
    """Database location: `sqlite` with a file, or `postgresql` with an address."""

    engine: str
    name: str
    user: str = ""
    password: str = ""
    host: str = ""
    port: str = ""
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Mail:
    """Outgoing mail server; `tls` is starttls, tls or none."""

    host: str
    port: int
    user: str
    password: str
    tls: str
    sender: str


@dataclass(frozen=True)
class Oidc:
    """Sign-in provider; `name` is the label of the button."""

    url: str
    client: str
    secret: str
    name: str


def parse_database_url(url: str) -> Database:
    """Parses COMPILEWATCH_DATABASE_URL. Raises SettingError.

    No option is ignored, so a URL that requests TLS never connects without TLS.
    """
    parts = parse_url(url)
    if parts and parts.scheme == "sqlite" and parts.path.strip("/"):
        return Database("sqlite", unquote(parts.path))
    if not parts or parts.scheme not in ("postgresql", "postgres") or not parts.path.strip("/"):
        raise SettingError(
            "COMPILEWATCH_DATABASE_URL is not valid, expected "
            "postgresql://user:password@host:5432/name or sqlite:///path/to/file; in a password "
            "write / as %2F, @ as %40, : as %3A, ? as %3F, # as %23, % as %25."
        )
    options = tuple(parse_qsl(parts.query, keep_blank_values=True))
    for name, value in options:
        if name not in DATABASE_OPTIONS:
            raise SettingError(
                f"COMPILEWATCH_DATABASE_URL has the option {name!r}, expected one of "
                f"{', '.join(DATABASE_OPTIONS)}."
            )
        if name == "sslmode" and value not in SSL_MODES:
            raise SettingError(
                f"COMPILEWATCH_DATABASE_URL has sslmode {value!r}, expected one of "
                f"{', '.join(SSL_MODES)}."
            )
    who, secret, port = (
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        str(parts.port or ""),
    )
    return Database(
        "postgresql",
        unquote(parts.path.lstrip("/")),
        who,
        secret,
        parts.hostname or "",
        port,
        options,
    )


def parse_redis_url(url: str) -> str:
    """Parses COMPILEWATCH_REDIS_URL. Raises SettingError.

    A TLS connection verifies the server's certificate, unless the URL disables this.
    """
    parts = parse_url(url)
    if not parts or parts.scheme not in ("redis", "rediss") or not parts.hostname:
        raise SettingError(
            "COMPILEWATCH_REDIS_URL is missing or not valid, expected redis://host:6379/0."
        )
    number = parts.path.removeprefix("/")
    if number and not (number.isascii() and number.isdecimal() and len(number) <= 4):
        raise SettingError(
            f"COMPILEWATCH_REDIS_URL names the database {number!r}, expected a number such "
            "as 0 in redis://host:6379/0."
        )
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    allowed = REDIS_OPTIONS if parts.scheme == "rediss" else ()
    for name in options:
        if name not in allowed:
            expected = (
                f"one of {', '.join(allowed)}"
                if allowed
                else "no option with redis://; use rediss:// for TLS"
            )
            raise SettingError(
                f"COMPILEWATCH_REDIS_URL has the option {name!r}, expected {expected}."
            )
    if options.get("ssl_cert_reqs", "required") not in ("required", "optional", "none"):
        raise SettingError(
            "COMPILEWATCH_REDIS_URL has an unknown ssl_cert_reqs, expected required, "
            "optional or none."
        )
    if parts.scheme == "rediss" and "ssl_cert_reqs" not in options:
        return urlunsplit(parts._replace(query=urlencode({**options, "ssl_cert_reqs": "required"})))
    return url


_MAIL_HOST_CHARS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-_")
_DEFAULT_MAIL_PORTS = {"starttls": "587", "tls": "465", "none": "25"}


def read_mail(environ: Mapping[str, str]) -> Mail | None:
    """Reads the mail server. Raises SettingError.

    None without a host: e-mail channels are then unavailable.
    """
    host, sender = (
        environ.get("COMPILEWATCH_EMAIL_HOST", "").strip(),
        environ.get("COMPILEWATCH_EMAIL_FROM", "").strip(),
    )
    if not host:
        _require_no_mail_settings(environ)
        return None
    if not parse_url(f"//{host}") or not set(host.lower()) <= _MAIL_HOST_CHARS:
        raise SettingError(
            f"COMPILEWATCH_EMAIL_HOST is {host!r}, expected a name without a port such as "
            "mail.example.com."
        )
    if sender.count("@") != 1 or any(letter.isspace() for letter in sender):
        raise SettingError(
            f"COMPILEWATCH_EMAIL_FROM is {sender!r}, expected an address such as "
            "compilewatch@example.com."
        )
    tls = read_choice(environ, "COMPILEWATCH_EMAIL_TLS", "starttls", ("starttls", "tls", "none"))
    user, password = _read_mail_credentials(environ, tls)
    port = environ.get("COMPILEWATCH_EMAIL_PORT") or _DEFAULT_MAIL_PORTS[tls]
    return Mail(host, parse_port("COMPILEWATCH_EMAIL_PORT", port), user, password, tls, sender)


def _require_no_mail_settings(environ: Mapping[str, str]) -> None:
    for name in (
        "COMPILEWATCH_EMAIL_FROM",
        "COMPILEWATCH_EMAIL_USER",
        "COMPILEWATCH_EMAIL_PASSWORD",
        "COMPILEWATCH_EMAIL_PORT",
    ):
        if environ.get(name) or environ.get(f"{name}_FILE"):
            raise SettingError(f"COMPILEWATCH_EMAIL_HOST is missing although {name} is set.")


def _read_mail_credentials(environ: Mapping[str, str], tls: str) -> tuple[str, str]:
    """User name and password: both or neither, and a password only over TLS."""
    user, password = (
        environ.get("COMPILEWATCH_EMAIL_USER", ""),
        read_value_or_file(environ, "COMPILEWATCH_EMAIL_PASSWORD"),
    )
    if bool(user) != bool(password):
        raise SettingError(
            "Only one of COMPILEWATCH_EMAIL_USER and COMPILEWATCH_EMAIL_PASSWORD is set: set "
            "both, or neither."
        )
    if password and tls == "none":
        raise SettingError(
            "COMPILEWATCH_EMAIL_TLS is 'none', expected starttls or tls: a password is not sent "
            "over an unencrypted connection."
        )
    return user, password


def read_oidc(environ: Mapping[str, str]) -> Oidc | None:
    """Reads the sign-in provider. Raises SettingError.

    None without a URL: people then sign in with passwords only.
    """
    url, client = (
        environ.get("COMPILEWATCH_OIDC_URL", "").strip().rstrip("/"),
        environ.get("COMPILEWATCH_OIDC_CLIENT_ID", "").strip(),
    )
    secret = read_value_or_file(environ, "COMPILEWATCH_OIDC_CLIENT_SECRET")
    if not url:
        if client or secret:
            raise SettingError(
                "COMPILEWATCH_OIDC_URL is missing although COMPILEWATCH_OIDC_CLIENT_ID or "
                "its secret is set."
            )
        return None
    _check_oidc_url(url)
    if not client or not secret:
        raise SettingError(
            "COMPILEWATCH_OIDC_URL requires COMPILEWATCH_OIDC_CLIENT_ID and "
            "COMPILEWATCH_OIDC_CLIENT_SECRET."
        )
    return Oidc(
        url,
        client,
        secret,
        environ.get("COMPILEWATCH_OIDC_NAME", "").strip()[:40] or "single sign-on",
    )


def _check_oidc_url(url: str) -> None:
    parts = parse_url(url)
    if (
        not parts
        or parts.scheme not in ("https", "http")
        or not parts.hostname
        or parts.query
        or parts.fragment
    ):
        raise SettingError(
            f"COMPILEWATCH_OIDC_URL is {url!r}, expected the issuer's URL such as "
            "https://login.example.com/realms/team."
        )
    if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise SettingError(
            "COMPILEWATCH_OIDC_URL is plain http, expected https: the provider's responses "
            "identify people."
        )


def local_host(listen: str) -> str:
    """The host by which this machine reaches its own server, in the form of a URL. The wildcards
    0.0.0.0 and :: become loopback."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listen, listen)
    return f"[{host}]" if ":" in host else host


def local_url(listen: str, port: int) -> str:
    """The URL by which this machine reaches its own server."""
    return f"http://{local_host(listen)}:{port}"


def extract_host(url: str) -> str:
    """The host of a URL as a browser sends it in the Host header, without the port. Empty if no
    browser would send it."""
    host = (urlsplit(url).hostname or "").removesuffix(".")
    try:
        host = f"[{ip_address(host).compressed}]" if ":" in host else host.encode("idna").decode()
    except ValueError:
        return ""
    return host if HOST_PATTERN.fullmatch(host) and host[0] not in "*." else ""


def is_loopback(listen: str) -> bool:
    """True if only this machine can reach the address."""
    try:
        return ip_address(listen).is_loopback
    except ValueError:
        return listen == "localhost"


def find_path_error(path: str) -> str:
    """Describes the error in the path of the base URL; empty if the path is valid."""
    if path and not re.fullmatch(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+", path):
        return f"has the path {path!r}, expected only letters, digits and . _ ~ -"
    first = path.split("/")[1] if path else ""
    return (
        f"has the path {path!r}, but /{first} is reserved for pages of the dashboard"
        if first in RESERVED_PATHS
        else ""
    )
