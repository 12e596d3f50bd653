"""`manage.py rejudge`: backtests past deployments with the current settings or with others."""

import re
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError

from dashboard.common import clock
from dashboard.common.management.operator_command import OperatorCommand
from dashboard.projects.models import Project
from dashboard.regressions.backtest import BacktestResult, BacktestRow, backtest_deployments
from dashboard.regressions.judge.settings_overrides import (
    OverrideError,
    Value,
    check_overrides,
    filter_known,
    list_settings,
    merge_layers,
)
from dashboard.regressions.judging_settings import schedule_rejudge
from dashboard.regressions.models import VerdictKind
from dashboard.regressions.settings_resolver import SettingsResolver

UNITS = {"h": 60, "d": 1440}


class Command(OperatorCommand):
    """`manage.py rejudge --project ranking --since 30d --dry-run --set p50.smallest_effect=8`"""

    help = (
        "Re-evaluates past deployments from their retained minutes and prints the verdicts then "
        "and now. Without --dry-run, live deployments are re-evaluated as well; past verdicts do "
        "not change."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Adds the options for the project, the range of time, and the settings."""
        parser.add_argument(
            "--project",
            metavar="SLUG",
            required=True,
            help="the project's short name, as in its URL",
        )
        parser.add_argument(
            "--since",
            default="8d",
            metavar="TIME",
            help="how far back, such as 12h or 30d (default 8d)",
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="only print; do not re-evaluate live deployments",
        )
        parser.add_argument(
            "--set",
            nargs="+",
            metavar="NAME=VALUE",
            default=[],
            help="try other settings, in the unit of the setting: 8 means 8%%",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Prints one line per deployment, newest first."""
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project {options['project']!r}.")
        if options["set"] and not options["dry_run"]:
            raise CommandError(
                "--set requires --dry-run: save permanent settings in Settings > Detection."
            )
        book = SettingsResolver(project_id=project.pk)
        tried = _tried(options["set"], filter_known(book.overrides(project_id=project.pk)))

        def settings_of(model_id: int) -> Any:
            if not tried:
                return book.of(project_id=project.pk, model_id=model_id)
            own = book.overrides(project_id=project.pk, model_id=model_id)
            return book.resolve_with(
                project_id=project.pk,
                model_id=model_id,
                overrides=merge_layers(book.overrides(project_id=project.pk), own, tried),
            )

        since = clock.minute_of(clock.unix()) - _minutes(options["since"])
        self._say(
            backtest_deployments(project=project, since_minute=since, settings_of=settings_of)
        )
        if options["dry_run"]:
            self.stdout.write("No changes made.")
        else:
            schedule_rejudge(project_id=project.pk)
            self.stdout.write(
                "The worker re-evaluates live deployments within seconds; past verdicts do not "
                "change."
            )

    def _say(self, found: BacktestResult) -> None:
        for line in found.lines:
            self.stdout.write(_head(line))
            self.stdout.write(
                f"  then {VerdictKind(line.then).label:<15}  now "
                f"{VerdictKind(line.now).label:<15}{_mark(line)}".rstrip()
            )
            self.stdout.write(f"  {line.sentence}")
        self.stdout.write(
            f"{len(found.lines)} deployments re-evaluated: {found.differing} verdicts would change."
        )
        for reason, count in found.reasons:
            self.stdout.write(f"{count} skipped: {reason}.")


def _head(line: BacktestRow) -> str:
    deployment = line.deployment
    where = f" in {deployment.environment}" if deployment.environment else ""
    at = clock.format_minute(deployment.started_minute)
    return (
        f"{deployment.model.name} {deployment.version.name}{where}, deployed {at}, against "
        f"{line.baseline.version.name}"
    )


def _mark(line: BacktestRow) -> str:
    return "  differs" if line.differs else ""


def _minutes(text: str) -> int:
    found = re.fullmatch(r"([1-9][0-9]{0,4})([hd])", text)
    if found is None:
        raise CommandError(
            f"--since is {text!r}, expected a number of hours or days such as 12h or 30d."
        )
    return int(found[1]) * UNITS[found[2]]


def _tried(words: list[str], below: Mapping[str, Value]) -> dict[str, Value]:
    names, tried = list_settings(), {}
    try:
        for word in words:
            name, _, text = word.partition("=")
            if name not in names:
                raise CommandError(
                    f"{name!r} is not a setting, expected one of {', '.join(names)}."
                )
            tried[name] = names[name].read(text)
        return check_overrides(tried, below)
    except OverrideError as error:
        raise CommandError(str(error)) from error
