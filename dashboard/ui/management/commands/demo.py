"""`manage.py demo`: the embedded dashboard with a small simulated fleet whose newest version
regresses."""

import sys
import threading
import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dashboard.demo.sender import Endpoint, Progress, send_live_reports, send_past_reports
from dashboard.demo.simulated_fleet import build_fleet, build_instances
from dashboard.demo.simulated_training import TRAINING
from dashboard.environment.groups import local_host
from dashboard.fleet.budgets import SETTING, Budgets, budgets_set
from dashboard.projects.bootstrap import SetupResult, project_setup
from dashboard.projects.models import Project
from dashboard.projects.services import key_create, key_revoke
from dashboard.regressions.judge.settings import PRODUCTION
from dashboard.ui.management.commands.serve import embedded_run, embedded_start

PROJECT = "Simulated fleet"
KEY_NAME = "simulated fleet"
BUDGETS = Budgets(cold_start=90.0, served=0.995)


class Command(BaseCommand):
    """All data comes from the simulator, through the real endpoint, processing, evaluation and
    alerts."""

    help = __doc__ or ""
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        began = time.monotonic()
        server = embedded_start(host=settings.ENV.listen)
        setup = project_setup(name=PROJECT, username="demo", actor_name="demo")
        if SETTING not in setup.project.settings:
            budgets_set(project=setup.project, model=None, budgets=BUDGETS, actor_name="demo")
        self.say_where(setup)
        progress = Progress(settings.ENV.data / "demo.json")
        progress.load(now=time.time())
        models = build_fleet(judged_minutes=PRODUCTION.warm_up_minutes + 2)
        simulated = build_instances((*models, TRAINING), start_minute=progress.start_minute)
        endpoint = Endpoint(
            host=local_host(settings.ENV.listen).strip("[]"),
            port=settings.ENV.port,
            key=simulator_key(setup.project),
        )
        if not progress.seeded:
            what = "24 h of data of a simulated fleet: three served models and a training job"
            self.stdout.write(f"compilewatch: sending {what}, through the report endpoint")
            count = send_past_reports(simulated, endpoint, progress, tell=self.tell)
            self.stdout.write(
                f"\rcompilewatch: {count:,} simulated reports acknowledged, "
                f"{time.monotonic() - began:.0f} s after the start"
            )
        self.stdout.write(
            "compilewatch: ready. ranker's newest version is slower and partly eager: a "
            "roll-back alert opens within 2 minutes"
        )
        self.stdout.flush()
        stopping = threading.Event()
        arguments = (simulated, endpoint, progress, stopping)
        threading.Thread(
            target=send_live_reports, args=arguments, name="compilewatch-demo", daemon=True
        ).start()
        embedded_run(server, stopping=stopping)

    def tell(self, done: int, total: int) -> None:
        """Progress: one line that rewrites itself on a terminal, a line per tenth elsewhere."""
        if sys.stdout.isatty():
            self.stdout.write(f"\rcompilewatch: {done:,} of {total:,} reports", ending="")
        elif done * 10 // total != (done - 32) * 10 // total:
            self.stdout.write(f"compilewatch: {done:,} of {total:,} reports")
        self.stdout.flush()

    def say_where(self, setup: SetupResult) -> None:
        """Prints the address and, at the first start, the password and a key."""
        self.stdout.write(f"\n  open      {settings.BASE_URL}")
        self.stdout.write(
            f"  sign in   demo / {setup.password or '(the password shown at the first start)'}"
        )
        if setup.key:
            self.stdout.write(f"  key       {setup.key}   (shown only once, for a job of your own)")
        self.stdout.write("  stop      Ctrl-C       remove everything: make clean\n\n", ending="")
        self.stdout.flush()


def simulator_key(project: Project) -> str:
    """Creates an ingest key for this start and revokes the keys of earlier starts."""
    for key in project.keys.filter(name=KEY_NAME, revoked_at=None):
        key_revoke(key=key, actor_name="demo")
    _, text = key_create(project=project, kind="ing", name=KEY_NAME, actor_name="demo")
    return text
