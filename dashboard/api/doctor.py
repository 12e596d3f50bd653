"""Doctor checks: settings, database, Redis, workers, clock, disk, mail and outbound network."""

from __future__ import annotations

import json
import os
import smtplib
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.core.mail import get_connection
from django.db import DatabaseError, connection

from dashboard.alerts.models import Channel
from dashboard.api.readiness import CHECKS, NO_ANSWER_TEXT, build_unknown_check
from dashboard.common import clock
from dashboard.common.health import Check, disk_check
from dashboard.common.outbound.client import OutboundError, outbound_probe
from dashboard.common.redis_status import BROKER, broker_address
from dashboard.ingest.health import quarantine_check

MAX_CLOCK_DIFFERENCE_S = 2.0
"""Maximum difference between the clocks of this machine and the database: both count minutes."""
MAX_PROBED_TARGETS = 10
FALLBACK_TEXT = (
    "workers continue on their own timer, more slowly. Check COMPILEWATCH_REDIS_URL and the "
    "Redis server."
)
PROVIDER_TIMEOUT_S = 5.0


def run_doctor() -> list[Check]:
    """Runs every check, including those after a failed check."""
    named: dict[str, Callable[[], Check]] = {
        "settings": settings_check,
        **CHECKS,
        "quarantine": quarantine_check,
        "redis": redis_check,
    }
    named |= {
        "clock": clock_check,
        "disk": disk_check,
        "secrets": secrets_check,
        "mail": mail_check,
    }
    named |= {"sign-in": provider_check, "outbound": outbound_check}
    found = []
    for name, check in named.items():
        try:
            found.append(check())
        except DatabaseError as error:
            found.append(
                _report_unusable_database(error)
                if name == "database"
                else build_unknown_check(name, _explain_no_answer(found))
            )
    return found


def _explain_no_answer(found: list[Check]) -> str:
    """Explains why the database does not answer a check: missing migrations, or no connection."""
    missing = [check for check in found if check.name == "migrations" and check.value]
    return "migrations are missing" if missing else NO_ANSWER_TEXT


def _report_unusable_database(error: DatabaseError) -> Check:
    said = " ".join(str(error).split())
    return Check(
        "database",
        False,
        None,
        None,
        "",
        f"The database of COMPILEWATCH_DATABASE_URL cannot be used: {said}",
    )


def settings_check() -> Check:
    """Runs the checks of `manage.py check --deploy`. An embedded server on loopback may use plain
    http."""
    found = checks.run_checks(include_deployment_checks=not settings.EMBEDDED)
    told = [one for one in found if one.level >= checks.WARNING and not one.is_silenced()]
    if told:
        return Check(
            "settings",
            False,
            len(told),
            0,
            "warnings",
            " ".join(f"{one.id}: {one.msg}" for one in told),
            serves=False,
        )
    return Check(
        "settings",
        True,
        0,
        0,
        "warnings",
        "The settings are safe for a server that other machines can reach.",
    )


def redis_check() -> Check:
    """Checks Redis with a write, as a task would do."""
    if settings.EMBEDDED:
        return Check("redis", True, None, None, "", "The embedded mode does not use Redis.")
    waiting = BROKER.probe()
    if waiting is None:
        return Check(
            "redis",
            False,
            None,
            None,
            "",
            f"Redis at {broker_address()} is unavailable ({BROKER.reason}): {FALLBACK_TEXT}",
        )
    return Check(
        "redis",
        True,
        waiting,
        None,
        "tasks",
        f"Redis at {broker_address()} works; {waiting} tasks are queued.",
    )


def clock_check() -> Check:
    """Compares this machine's clock with the database's clock."""
    if connection.vendor != "postgresql":
        return Check(
            "clock",
            True,
            0.0,
            MAX_CLOCK_DIFFERENCE_S,
            "s",
            "The database uses the clock of this machine.",
        )
    with connection.cursor() as cursor:
        before = clock.unix()
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        row = cursor.fetchone()
    apart = float(row[0]) - (before + clock.unix()) / 2 if row else 0.0
    if abs(apart) > MAX_CLOCK_DIFFERENCE_S:
        said = (
            f"The database's clock is {apart:+.1f} s from this machine's "
            f"({datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC): set both by NTP."
        )
        return Check("clock", False, apart, MAX_CLOCK_DIFFERENCE_S, "s", said)
    return Check(
        "clock",
        True,
        apart,
        MAX_CLOCK_DIFFERENCE_S,
        "s",
        "The clocks of this machine and the database agree.",
    )


def secrets_check() -> Check:
    """Finds secret files that other users of this machine can read."""
    named = [
        Path(value)
        for name, value in os.environ.items()
        if name.startswith("COMPILEWATCH_") and name.endswith("_FILE") and value
    ]
    files = (
        named
        + [settings.ENV.data / name for name in ("secret_key.txt", "key_pepper.txt")]
        * settings.EMBEDDED
    )
    open_to_all = [str(file) for file in files if file.exists() and file.stat().st_mode & 0o004]
    if open_to_all:
        mend = (
            "run chmod o-r and give the dashboard's user or group ownership; for a Kubernetes "
            "volume, set defaultMode: 0440 and fsGroup"
        )
        said = f"Every user of this machine can read {', '.join(open_to_all)}: {mend}."
        return Check("secrets", False, len(open_to_all), 0, "files", said)
    return Check("secrets", True, 0, 0, "files", "No secret file is readable by every user.")


def mail_check() -> Check:
    """Connects and signs in to the mail server without sending a message."""
    if not settings.MAIL_READY:
        return Check(
            "mail",
            True,
            None,
            None,
            "",
            "No mail server is configured: invitations are links to copy, and e-mail channels "
            "are unavailable.",
        )
    where = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
    try:
        mail = get_connection()
        mail.open()
        mail.close()
    except (OSError, smtplib.SMTPException) as error:
        return Check(
            "mail",
            False,
            None,
            None,
            "",
            f"The mail server {where} refuses the connection: "
            f"{str(error).strip() or type(error).__name__}",
        )
    return Check("mail", True, None, None, "", f"The mail server {where} accepts the connection.")


def provider_check() -> Check:
    """Reads the discovery document of the sign-in provider, as a sign-in would."""
    if not settings.ENV.oidc:
        return Check(
            "sign-in",
            True,
            None,
            None,
            "",
            "No sign-in provider is configured: people sign in with passwords.",
        )
    address = f"{settings.ENV.oidc.url}/.well-known/openid-configuration"
    try:
        # The operator set the address, and the setting requires https.
        with urllib.request.urlopen(address, timeout=PROVIDER_TIMEOUT_S) as answer:
            issuer = json.loads(answer.read(1 << 20)).get("issuer", "")
    except (OSError, ValueError, AttributeError) as error:
        return Check(
            "sign-in",
            False,
            None,
            None,
            "",
            f"The provider of COMPILEWATCH_OIDC_URL does not respond at {address}: {error}.",
        )
    if str(issuer).rstrip("/") != settings.ENV.oidc.url:
        return Check(
            "sign-in",
            False,
            None,
            None,
            "",
            f"The provider's issuer is {issuer!r}: set COMPILEWATCH_OIDC_URL to that URL.",
        )
    return Check(
        "sign-in", True, None, None, "", f"The provider at {settings.ENV.oidc.url} responds."
    )


def outbound_check() -> Check:
    """Connects once to each address that channels notify, without sending a notification."""
    places: dict[str, str] = {}
    for channel in (
        Channel.objects.filter(enabled=True).exclude(kind__in=("email", "apprise")).order_by("pk")
    ):
        places.setdefault(urlsplit(channel.address).netloc.rpartition("@")[2], channel.address)
    failed = []
    for netloc, address in list(places.items())[:MAX_PROBED_TARGETS]:
        try:
            outbound_probe(url=address)
        except OutboundError as error:
            failed.append(f"{netloc}: {error}")
    if failed:
        return Check("outbound", False, len(failed), 0, "places", " ".join(failed))
    said = (
        f"All {len(places)} channel addresses can be reached."
        if places
        else "No channel is configured yet."
    )
    return Check("outbound", True, 0, 0, "places", said)
