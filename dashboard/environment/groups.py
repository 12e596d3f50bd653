"""What several environment variables say together: the database, the mail server, the provider of
sign-ins, our own address."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from dashboard.environment.parsers import SettingError, parse_url

RESERVED_PATHS = frozenset(
    (
        "account",
        "accounts",
        "admin",
        "api",
        "favicon.ico",
        "health",
        "healthz",
        "invitations",
        "metrics",
        "numbers",
        "p",
    )
)
RESERVED_PATHS |= {"projects", "readyz", "static", "ui"}
"""How the paths of the dashboard itself begin: under such a path it could not be told whether a
proxy took it off."""


HOST_PATTERN = re.compile(r"\*|\.?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\]")
"""What a browser's Host header names, without its port; with a dot in front every name below it, *
any."""

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
"""What may stand behind the ? of a database's address; libpq takes them as they are."""
SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


REDIS_OPTIONS = ("ssl_cert_reqs", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
"""What may stand behind the ? of a rediss:// address."""


@dataclass(frozen=True)
class Database:
    """Where the data lives: `sqlite` with a file, or `postgresql` with an address."""

    engine: str
    name: str
    user: str = ""
    password: str = ""
    host: str = ""
    port: str = ""
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Mail:
    """The server that takes our mail; `tls` is starttls, tls or none."""

    host: str
    port: int
    user: str
    password: str
    tls: str
    sender: str


@dataclass(frozen=True)
class Oidc:
    """The provider at which people may sign in; `name` stands on the button."""

    url: str
    client: str
    secret: str
    name: str


def parse_database_url(url: str) -> Database:
    """What COMPILEWATCH_DATABASE_URL says. Nothing in it is passed over: an address that asks for
    TLS is not used without."""
    parts = parse_url(url)
    if parts and parts.scheme == "sqlite" and parts.path.strip("/"):
        return Database("sqlite", unquote(parts.path))
    if not parts or parts.scheme not in ("postgresql", "postgres") or not parts.path.strip("/"):
        raise SettingError(
            "COMPILEWATCH_DATABASE_URL is not understood, expected "
            "postgresql://user:password@host:5432/name or sqlite:///path/to/file; "
            "in a password write / as %2F, @ as %40, : as %3A, ? as %3F, # as %23, % as %25."
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
    """What COMPILEWATCH_REDIS_URL says. One that asks for TLS looks at the server's certificate
    unless told otherwise."""
    parts = parse_url(url)
    if not parts or parts.scheme not in ("redis", "rediss") or not parts.hostname:
        raise SettingError(
            "COMPILEWATCH_REDIS_URL is missing or not understood, expected redis://host:6379/0."
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
                else "none with redis://; TLS is rediss://"
            )
            raise SettingError(
                f"COMPILEWATCH_REDIS_URL has the option {name!r}, expected {expected}."
            )
    if options.get("ssl_cert_reqs", "required") not in ("required", "optional", "none"):
        raise SettingError(
            "COMPILEWATCH_REDIS_URL has another ssl_cert_reqs than required, optional or none."
        )
    if parts.scheme == "rediss" and "ssl_cert_reqs" not in options:
        return urlunsplit(parts._replace(query=urlencode({**options, "ssl_cert_reqs": "required"})))
    return url


def local_host(listen: str) -> str:
    """By which this machine itself reaches what listens there, as an address of a page has it:
    0.0.0.0 and :: are every address."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listen, listen)
    return f"[{host}]" if ":" in host else host


def local_url(listen: str, port: int) -> str:
    """The same with its port."""
    return f"http://{local_host(listen)}:{port}"


def extract_host(url: str) -> str:
    """As the Host header of a browser's request to this address has it, without its port; empty if
    no browser would ask for it."""
    host = (urlsplit(url).hostname or "").removesuffix(".")
    try:
        host = f"[{ip_address(host).compressed}]" if ":" in host else host.encode("idna").decode()
    except ValueError:
        return ""
    return host if HOST_PATTERN.fullmatch(host) and host[0] not in "*." else ""


def is_loopback(listen: str) -> bool:
    """Whether nobody but this machine itself can reach what listens there."""
    try:
        return ip_address(listen).is_loopback
    except ValueError:
        return listen == "localhost"


def find_path_error(path: str) -> str:
    """What is wrong with the path of our own address; empty if nothing is."""
    if path and not re.fullmatch(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+", path):
        return f"has the path {path!r}, which is not made of letters, digits and . _ ~ - alone"
    first = path.split("/")[1] if path else ""
    return (
        f"has the path {path!r}, and paths of the dashboard's own begin with /{first}"
        if first in RESERVED_PATHS
        else ""
    )
