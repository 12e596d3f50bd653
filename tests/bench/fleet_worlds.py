"""Confounders and additional disturbances of a simulated fleet, as changes to a `Fleet`; none of
them is a fault."""

from __future__ import annotations

CONFOUNDERS: dict[str, dict[str, object]] = {
    "same": {},
    "mix shift": {"candidate_mix": 0.25},
    "slower GPU only": {"candidate_gpus": ("L40S",)},
    "GPU imbalance": {"candidate_gpus": ("A100",)},
    "bursts x4": {"bursts_per_day": 8.0},
    "low traffic": {"calls_per_minute": 15.0},
}

WORSE: dict[str, dict[str, object]] = {
    "bursts x10": {"bursts_per_day": 20.0},
    "hosts move by rack": {"rack_sd": 0.03},
    "days differ": {"day_step": 0.05},
    "restarts every hour": {"restart_minutes": 60},
    "all of it": {"bursts_per_day": 20.0, "rack_sd": 0.03, "day_step": 0.05, "restart_minutes": 60},
}
"""More disturbances than the fleets on which the constants were chosen; none of them is a fault."""

WORSE_STILL: dict[str, dict[str, object]] = {
    "weekends": {"weekend": 0.05},
    "autoscaling": {"autoscale": True},
    "all of it and both": {
        **WORSE["all of it"],
        "restart_minutes": 0,
        "weekend": 0.05,
        "autoscale": True,
    },
}
"""Simulated later, so these rows come after all others. Scaled instances have no additional
restarts."""

RARE: dict[str, dict[str, object]] = {
    "lone eager calls, a tenth looked up": {
        "calls_per_minute": 20.0,
        "lone_eager_per_day": 48.0,
        "looked_up": 0.1,
    },
    "running maximum": {"peak_climb": 0.02},
    "bursts of errors x16": {"error_bursts_per_day": 8.0},
}
"""Disturbances for the rules without statistics; simulated last."""
