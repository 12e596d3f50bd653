"""`manage.py refold`: puts reports that were set aside back into the line."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from dashboard.fleet.fold_service import poison_refold


class Command(BaseCommand):
    """Brings back every report that was set aside, or those with the given ids."""

    help = (
        "Puts reports that were set aside back into the inbox; they are folded by the next sweep."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Ids are optional."""
        parser.add_argument(
            "ids",
            nargs="*",
            type=int,
            metavar="ID",
            help="ids of reports set aside; all without one",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Says how many went back."""
        count = poison_refold(ids=options["ids"] or None)
        self.stdout.write(
            f"{count} {'report' if count == 1 else 'reports'} put back into the inbox"
        )
