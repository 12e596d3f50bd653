"""Doctor: checks everything that a running dashboard needs, prints each problem, and exits with 1
if a check fails."""

import json
import sys
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from dashboard.api.doctor import run_doctor
from dashboard.common.log_formatters import redact_secrets


class Command(BaseCommand):
    """Runs the checks; changes nothing and sends nothing."""

    help = __doc__ or ""
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--json", action="store_true", help="print one JSON object instead of lines"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        found = run_doctor()
        well = all(check.ok for check in found)
        if options["json"]:
            self.stdout.write(
                redact_secrets(
                    json.dumps({"ok": well, "checks": [asdict(check) for check in found]}, indent=1)
                )
            )
        else:
            for check in found:
                self.stdout.write(
                    redact_secrets(
                        f"{'ok  ' if check.ok else 'BAD '}  {check.name:<11} {check.sentence}"
                    )
                )
            bad = sum(not check.ok for check in found)
            self.stdout.write(
                "All checks passed."
                if well
                else f"{bad} of {len(found)} checks failed; each states how to fix it."
            )
        if not well:
            sys.exit(1)
