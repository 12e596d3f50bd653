"""A database that is there and of no use to us, as with a wrong password: no waiting helps, so a
process says so and ends at once."""

from __future__ import annotations

import sys

from django.db import DatabaseError, OperationalError, ProgrammingError, connection

from dashboard.environment.settings import BOOT_ERROR_EXIT_CODE

REFUSAL_TEXTS = (
    "authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "does not exist",
    "not permitted to log in",
)
"""PostgreSQL's words for it; libpq hands on no code of a connection that failed. In another
language it is waited for and logged."""


def find_database_refusal() -> str:
    """A sentence with what PostgreSQL says, which never holds the password; empty where it lets us
    in, and where it does not answer."""
    try:
        connection.ensure_connection()
    except OperationalError as error:
        said = " ".join(str(error).split())
        return (
            f"the database of COMPILEWATCH_DATABASE_URL refuses us: {said}"
            if any(words in said for words in REFUSAL_TEXTS)
            else ""
        )
    finally:
        connection.close()
    return ""


def find_schema_refusal() -> str:
    """A sentence if migrations of this release are missing; empty where none is, and where the
    database does not answer.

    Not asked by web, which says 503 at /readyz until they are there: whoever stops it for that
    would stop reports being taken."""
    from dashboard.common.health import migrations_check  # noqa: PLC0415  # Django is set up only now

    try:
        check = migrations_check()
    except OperationalError:
        return ""
    finally:
        connection.close()
    return (
        ""
        if check.ok
        else "the database of COMPILEWATCH_DATABASE_URL has the schema of an earlier release, "
        f"or none: {check.sentence}"
    )


def describe_failure(error: DatabaseError, *, command: list[str]) -> str:
    """What a command that ended with this error says; empty where it is a fault of ours, which
    nobody else can mend."""
    # SQLite says of a table or a column that is missing what it says of a full disk: that it is
    # operational.
    missing = isinstance(error, ProgrammingError) or "no such" in str(error)
    # What goes wrong while migrations run is said as it is.
    if (
        missing
        and command not in (["migrate"], ["serve"], ["demo"])
        and (refusal := find_schema_refusal())
    ):
        return f"compilewatch cannot start: {refusal}"
    if isinstance(error, ProgrammingError):
        return ""
    named = (
        "of COMPILEWATCH_DATABASE_URL"
        if connection.vendor == "postgresql"
        else connection.settings_dict["NAME"]
    )
    return f"The database {named} cannot be used: {str(error).strip()}"


def exit_on_refusal() -> None:
    """For worker and beat, which do not start through manage.py."""
    if refusal := find_database_refusal() or find_schema_refusal():
        sys.stderr.write(f"compilewatch cannot start: {refusal}\n")
        raise SystemExit(BOOT_ERROR_EXIT_CODE)
