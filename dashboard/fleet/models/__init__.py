"""Fleet models: catalogue (entities), values per minute (time series), and events."""

from dashboard.fleet.models.commands import CommandReceipt
from dashboard.fleet.models.entities import (
    Deployment,
    Instance,
    InstanceState,
    ModelVersion,
    Series,
    Stratum,
    WatchedModel,
)
from dashboard.fleet.models.events import (
    ColdStart,
    CompileEvent,
    Finding,
    FindingInstance,
    FindingLife,
    FindingVersion,
)
from dashboard.fleet.models.limits import LimitReached
from dashboard.fleet.models.marks import DeploymentMark
from dashboard.fleet.models.numerics import ParityResult
from dashboard.fleet.models.storage import StorageMeasure
from dashboard.fleet.models.timeseries import (
    ProcessMinute,
    RegionMinute,
    VersionHour,
    VersionMinute,
    VersionProcessHour,
    VersionProcessMinute,
)

__all__ = [
    "ColdStart",
    "CommandReceipt",
    "CompileEvent",
    "Deployment",
    "DeploymentMark",
    "Finding",
    "FindingInstance",
    "FindingLife",
    "FindingVersion",
    "Instance",
    "InstanceState",
    "LimitReached",
    "ModelVersion",
    "ParityResult",
    "ProcessMinute",
    "RegionMinute",
    "Series",
    "StorageMeasure",
    "Stratum",
    "VersionHour",
    "VersionMinute",
    "VersionProcessHour",
    "VersionProcessMinute",
    "WatchedModel",
]
