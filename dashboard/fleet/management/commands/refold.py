"""`manage.py refold`: puts quarantined reports back into the inbox."""

from argparse import ArgumentParser
from typing import Any

from dashboard.common.management.operator_command import OperatorCommand
from dashboard.fleet.fold_service import poison_refold


class Command(OperatorCommand):
    """Puts back all quarantined reports, or those with the given ids."""

    help = "Puts quarantined reports back into the inbox; the next sweep folds them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the optional ids."""
        parser.add_argument(
            "ids",
            nargs="*",
            type=int,
            metavar="ID",
            help="ids of quarantined reports (default: all)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Put the reports back and print their number."""
        count = poison_refold(ids=options["ids"] or None)
        self.stdout.write(
            f"{count} {'report' if count == 1 else 'reports'} put back into the inbox"
        )
