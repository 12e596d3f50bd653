"""`manage.py scrape`: adds and removes engines without an agent, reads them, and prints their
state."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from dashboard.common import clock
from dashboard.common.management.operator_command import OperatorCommand
from dashboard.ingest.models import EngineTarget
from dashboard.ingest.scrapers.metric_names import FORMATS
from dashboard.ingest.scrapers.services import (
    EngineError,
    engine_add,
    engine_remove,
    engines_read,
    import_engine_log,
)
from dashboard.projects.models import Project
from dashboard.vocabulary.numbers import significant


class Command(OperatorCommand):
    """Without an option, reads every engine once. Workers do the same every 15 s."""

    help = (
        "Reads the /metrics of vLLM and SGLang servers that run without an agent; --add and "
        "--remove change the list of engines."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--project", help="The project's short name; optional if there is only one project."
        )
        parser.add_argument(
            "--add", metavar="URL", help="Such as https://llm.example.com:8443/metrics."
        )
        parser.add_argument("--remove", metavar="URL")
        parser.add_argument("--engine", choices=tuple(FORMATS), default="vllm")
        parser.add_argument("--model", default="", help="The served model.")
        parser.add_argument(
            "--release", default="", help="Its version, for the comparison of versions."
        )
        parser.add_argument("--environment", default="production")
        parser.add_argument(
            "--gpu", default="", help="For example 'NVIDIA H200': only equal GPUs are compared."
        )
        parser.add_argument(
            "--log",
            metavar="FILE",
            help="The start-up log of the engine at --of, for compile times.",
        )
        parser.add_argument("--of", metavar="URL", default="")
        parser.add_argument(
            "--list",
            action="store_true",
            help="Prints the state of each engine without reading it.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["add"]:
                self._add(options)
            elif options["remove"]:
                engine_remove(project=_project(options["project"]), url=options["remove"])
            elif options["log"]:
                self._log(options)
            elif not options["list"]:
                engines_read()
        except EngineError as error:
            raise CommandError(str(error)) from error
        for target in EngineTarget.objects.select_related("project").order_by(
            "project__slug", "url"
        ):
            read = (
                f"read {clock.unix() - target.read_at:.0f} s ago"
                if target.read_at
                else "not read yet"
            )
            self.stdout.write(
                f"{target.project.slug}  {target.url}  {target.model_name} "
                f"{target.version_name}  {target.trouble or read}"
            )

    def _log(self, options: dict[str, Any]) -> None:
        try:
            with Path(options["log"]).open(encoding="utf-8", errors="replace") as lines:
                stages = import_engine_log(
                    project=_project(options["project"]), url=options["of"], lines=lines
                )
        except OSError as error:
            raise CommandError(f"{options['log']} cannot be read: {error.strerror}.") from error
        self.stdout.write(
            ", ".join(f"{name} {significant(seconds, 6)} s" for name, seconds in stages.items())
        )

    def _add(self, options: dict[str, Any]) -> None:
        engine_add(
            project=_project(options["project"]),
            url=options["add"],
            engine=options["engine"],
            model=options["model"],
            version=options["release"],
            environment=options["environment"],
            gpu=options["gpu"],
        )


def _project(slug: str | None) -> Project:
    found = list((Project.objects.filter(slug=slug) if slug else Project.objects.all())[:2])
    if len(found) != 1:
        raise CommandError(
            f"There is no project {slug}."
            if slug
            else "Set --project: there is more than one project."
        )
    return found[0]
