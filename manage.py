#!/usr/bin/env python3
"""Django's command line for the dashboard."""

import os
import sys


def main() -> None:
    """Runs a management command. A wrong setting ends the command with one sentence instead of a
    traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError:
        sys.exit(
            "Django is not installed here. Run `make demo` or `make up`, which set "
            "everything up in .venv."
        )
    from django.db import OperationalError, ProgrammingError

    from dashboard.environment.settings import SettingError

    try:
        execute_from_command_line(sys.argv)
    except SettingError as error:
        sys.exit(f"compilewatch cannot start: {error}")
    except (OperationalError, ProgrammingError) as error:
        from dashboard.common.fatal_database_errors import describe_failure

        if not (said := describe_failure(error, command=sys.argv[1:2])):
            raise
        sys.exit(said)


if __name__ == "__main__":
    main()
