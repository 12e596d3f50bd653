"""Models of regressions: verdicts and their evidence. A row is retained for each change of a
verdict and once an hour."""

from dataclasses import dataclass
from datetime import datetime

from django.db import models

from dashboard.fleet.models import Deployment, ModelVersion, WatchedModel
from dashboard.projects.models import Project


class VerdictKind(models.TextChoices):
    """The four kinds of a verdict."""

    ROLL_BACK = "roll_back", "ROLL BACK"
    WATCH = "watch", "WATCH"
    HEALTHY = "healthy", "HEALTHY"
    NOT_ENOUGH_DATA = "not_enough_data", "NOT ENOUGH DATA"


class Comparison(models.Model):
    """A deployment with one baseline: the last evaluated minute, and the running state."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    deployment = models.OneToOneField(
        Deployment, on_delete=models.CASCADE, related_name="comparison"
    )
    baseline = models.ForeignKey(Deployment, null=True, on_delete=models.SET_NULL, related_name="+")
    judged_minute = models.BigIntegerField(
        default=0,
        help_text="First minute that was not closed at the last evaluation; 0: evaluate again.",
    )
    judged_revision = models.BigIntegerField(
        default=0,
        help_text="ModelVersion.late_folds of the deployment's version when it was last judged.",
    )
    state = models.BinaryField(
        null=True, help_text="Sums and counts per instance, so that any worker continues."
    )

    class Meta:
        db_table = "comparison"


@dataclass(frozen=True)
class RetainedVerdict:
    """Reason to show an earlier verdict: an open alert, and a current evaluation that does not
    support the alert."""

    alert: int
    known_at: datetime
    """The last time at which the shown verdict was known to hold."""
    kind_now: str
    sentence_now: str
    silent: bool = False
    """True if the alert reports silent instances: the evaluation is then older than the current
    data."""


class Verdict(models.Model):
    """The verdict on a deployment at a minute, with its evidence at that time."""

    outlived: RetainedVerdict | None = None
    """Not a column: set by `alerts.standing` if this verdict is shown as the last known one."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, related_name="verdicts")
    baseline = models.ForeignKey(Deployment, null=True, on_delete=models.SET_NULL, related_name="+")
    kind = models.CharField(max_length=16, choices=VerdictKind.choices)
    previous_kind = models.CharField(max_length=16, default="")
    sentence = models.TextField()
    cause = models.TextField(default="")
    evidence = models.JSONField(
        help_text="The judge's outcome: metrics, dots, metrics without a comparison."
    )
    minute = models.BigIntegerField(help_text="The last minute of data in it.")
    since_minute = models.BigIntegerField(
        null=True, help_text="First minute of the current statement."
    )
    created_at = models.DateTimeField()
    current = models.BooleanField(default=True)

    class Meta:
        db_table = "verdict"
        constraints = [
            models.UniqueConstraint(
                fields=["deployment"], condition=models.Q(current=True), name="one_current_verdict"
            )
        ]
        indexes = [models.Index(fields=["project", "-created_at"], name="verdict_by_project")]


class BaselineChoice(models.Model):
    """An operator's choice of a baseline: a pinned version, or a level accepted as the new
    baseline."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    model = models.ForeignKey(WatchedModel, on_delete=models.CASCADE, related_name="+")
    environment = models.CharField(max_length=64)
    version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(
        max_length=16, choices=[("pin", "Pinned"), ("accept", "Accepted as new baseline")]
    )
    note = models.TextField(default="")
    chosen_at = models.DateTimeField()
    chosen_by_name = models.CharField(max_length=150)
    ended_at = models.DateTimeField(null=True)
    ended_by_name = models.CharField(max_length=150, default="", db_default="")

    class Meta:
        db_table = "baseline_choice"
        constraints = [
            models.UniqueConstraint(
                fields=["model", "environment"],
                condition=models.Q(ended_at=None),
                name="one_baseline_choice",
            ),
        ]


class JudgingChoice(models.Model):
    """Settings that operators changed from the defaults, for a project or for one model. The audit
    log records the changes."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    model = models.ForeignKey(
        WatchedModel,
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="None: for every model.",
    )
    values = models.JSONField(
        default=dict,
        help_text="By name, such as p50.smallest_effect; absent names use the layer below.",
    )

    class Meta:
        db_table = "judging_choice"
        constraints = [
            models.UniqueConstraint(
                fields=["project"],
                condition=models.Q(model=None),
                name="one_judging_choice_per_project",
            ),
            models.UniqueConstraint(fields=["model"], name="one_judging_choice_per_model"),
        ]


class PlaceboPreview(models.Model):
    """What a choice of settings would detect, and how often it would be wrong: requested on the
    Detection page, computed by the workers period by period."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    model = models.ForeignKey(
        WatchedModel,
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="None: for every model.",
    )
    values = models.JSONField(
        default=dict, help_text="The choices of this layer, as in JudgingChoice.values."
    )
    plan = models.JSONField(
        null=True, help_text="The periods to judge, and skipped versions by reason."
    )
    done = models.IntegerField(default=0, help_text="Number of judged periods.")
    tally = models.JSONField(default=dict, help_text="Counts of the judged placebo pairs.")
    spent_s = models.FloatField(default=0.0)
    requested_at = models.DateTimeField()
    requested_by_name = models.CharField(max_length=150)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "placebo_preview"
        indexes = [
            models.Index(fields=["project", "model", "-requested_at"], name="preview_by_request"),
            models.Index(
                fields=["requested_at"],
                condition=models.Q(finished_at=None),
                name="preview_unfinished",
            ),
        ]


class SettingsBacktest(models.Model):
    """The verdicts that a choice of settings would have given in the last days: requested on the
    Detection page, computed by the workers deployment by deployment."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    model = models.ForeignKey(
        WatchedModel,
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="None: for every model.",
    )
    values = models.JSONField(
        default=dict, help_text="The choices of this layer, as in JudgingChoice.values."
    )
    deployments = models.JSONField(
        null=True, help_text="IDs of the deployments to evaluate, newest first."
    )
    done = models.IntegerField(default=0, help_text="Number of deployments that are finished.")
    evaluated = models.IntegerField(default=0)
    left_out = models.JSONField(default=dict, help_text="Number of skipped deployments by reason.")
    changes = models.JSONField(default=list, help_text="The deployments whose verdict changes.")
    requested_at = models.DateTimeField()
    requested_by_name = models.CharField(max_length=150)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "settings_backtest"
        indexes = [
            models.Index(fields=["project", "model", "-requested_at"], name="backtest_by_request"),
            models.Index(
                fields=["requested_at"],
                condition=models.Q(finished_at=None),
                name="backtest_unfinished",
            ),
        ]


class HealthyPair(models.Model):
    """The learned sums of a pair of versions: replayed once, pooled with the other pairs each
    night. A pair with a bad verdict teaches only its warm-up."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    deployment = models.OneToOneField(Deployment, on_delete=models.CASCADE, related_name="+")
    started_minute = models.BigIntegerField()
    taught = models.JSONField(
        help_text="Sums by metric; empty where the pair had too little to teach."
    )
    warm_up = models.JSONField(
        null=True,
        help_text="Sums of the excess of young processes by age; null in older rows.",
    )

    class Meta:
        db_table = "healthy_pair"
        indexes = [models.Index(fields=["project", "started_minute"], name="healthy_pair_by_age")]


class LearnedWarmUp(models.Model):
    """Minutes after which the call time of a model's processes has settled, learned nightly from
    the pairs of its versions."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    model = models.OneToOneField(WatchedModel, on_delete=models.CASCADE, related_name="+")
    minutes = models.IntegerField()
    processes = models.IntegerField()
    versions = models.IntegerField()
    learned_at = models.DateTimeField()

    class Meta:
        db_table = "learned_warm_up"


class LearnedVariance(models.Model):
    """Variance between healthy instances of past versions, per metric, learned nightly. A row at
    minute 0 means that none was learned."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    metric = models.CharField(max_length=32)
    layout = models.CharField(max_length=16)
    minutes = models.IntegerField()
    variance = models.FloatField()
    day_variance = models.FloatField(null=True)
    dispersion = models.FloatField(null=True)
    prior_df = models.IntegerField(null=True)
    pairs = models.IntegerField()
    learned_at = models.DateTimeField()

    class Meta:
        db_table = "learned_variance"
        constraints = [
            models.UniqueConstraint(
                fields=["project", "metric", "layout", "minutes"], name="one_variance_per_point"
            )
        ]
