"""Fatal database errors: a database that refuses this process, for example for a wrong password.

Waiting does not help, so the process reports the error and ends at once.
"""

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
"""Messages of PostgreSQL for a refusal; libpq reports no error code for a failed connection. The
process waits and logs if the server uses another language."""


def find_database_refusal() -> str:
    """Returns a sentence with PostgreSQL's message, which never contains the password.

    Empty if the connection succeeds or the database does not answer.
    """
    try:
        connection.ensure_connection()
    except OperationalError as error:
        said = " ".join(str(error).split())
        return (
            f"the database of COMPILEWATCH_DATABASE_URL refuses the connection: {said}"
            if any(words in said for words in REFUSAL_TEXTS)
            else ""
        )
    finally:
        connection.close()
    return ""


def find_schema_refusal() -> str:
    """Returns a sentence if migrations of this release are missing; empty otherwise, or if the
    database does not answer.

    The web process does not call this. /readyz answers 503 until the migrations are applied; ending
    the process would stop the intake of reports.
    """
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
    """Returns the message for a command that failed with this error. Empty for a bug of the
    dashboard, which needs its traceback."""
    # SQLite raises OperationalError for a missing table or column, as it does for a full disk.
    missing = isinstance(error, ProgrammingError) or "no such" in str(error)
    # Failures during migrations are reported as they are.
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
    """Ends a worker that the database refuses; a worker does not start through manage.py."""
    if refusal := find_database_refusal() or find_schema_refusal():
        sys.stderr.write(f"compilewatch cannot start: {refusal}\n")
        raise SystemExit(BOOT_ERROR_EXIT_CODE)
