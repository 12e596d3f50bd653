"""Tasks of ingest: read the engines that have no agent."""

from celery import shared_task

from dashboard.common.job_slots import job_run
from dashboard.common.nudge import nudge
from dashboard.ingest.scrapers.services import engines_read
from dashboard.pipeline import stage_interval_s


@shared_task(name="dashboard.ingest.tasks.scrape")
def scrape(swept: bool = True) -> None:
    """Reads every engine once."""
    if job_run(name="scrape", interval=stage_interval_s("scrape"), job=engines_read):
        nudge("dashboard.fleet.tasks.fold")
