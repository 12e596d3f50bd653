"""Tasks of the judge: fetch, call the service, nudge the next stage."""

from celery import shared_task

from dashboard.common.job_slots import job_run
from dashboard.common.nudge import nudge
from dashboard.pipeline import stage_interval_s
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.placebo_preview import previews_compute
from dashboard.regressions.rank_monitor import ranks_watch
from dashboard.regressions.settings_backtest import backtests_compute
from dashboard.regressions.variance_learning import variances_learn

JUDGE_BUDGET_S = 1.0
"""Seconds per run. All deployments become due when a minute closes, and reports wait to be folded
meanwhile, so folds run in between."""
PREVIEW_BUDGET_S = 1.0
"""Seconds per run, for the same reason."""


@shared_task(name="dashboard.regressions.tasks.judge")
def judge(swept: bool = False) -> None:
    """Evaluates deployments with new minutes."""
    if job_run(name="judge", interval=stage_interval_s("judge"), job=_judge, nudged=not swept):
        nudge("dashboard.alerts.tasks.sweep")


def _judge() -> int:
    return deployments_judge(
        seconds=JUDGE_BUDGET_S, unfinished=lambda: nudge("dashboard.regressions.tasks.judge")
    )


@shared_task(name="dashboard.regressions.tasks.ranks")
def ranks(swept: bool = False) -> None:
    """Checks whether ranks of a job diverged. A divergence does not wait for the end of a
    minute."""
    if job_run(name="ranks", interval=stage_interval_s("ranks"), job=ranks_watch, nudged=not swept):
        nudge("dashboard.alerts.tasks.sweep")


@shared_task(name="dashboard.regressions.tasks.learn")
def learn(swept: bool = False) -> None:
    """Learns the variance between healthy instances. Learned values take effect once a day."""
    job_run(name="learn", interval=stage_interval_s("learn"), job=variances_learn, nudged=not swept)


@shared_task(name="dashboard.regressions.tasks.preview")
def preview(swept: bool = False) -> None:
    """Judges placebo pairs and past deployments for the settings that people try."""
    job_run(name="preview", interval=stage_interval_s("preview"), job=_preview, nudged=not swept)


def _preview() -> int:
    def again() -> None:
        nudge("dashboard.regressions.tasks.preview")

    return sum(
        compute(seconds=PREVIEW_BUDGET_S / 2, unfinished=again)
        for compute in (previews_compute, backtests_compute)
    )
