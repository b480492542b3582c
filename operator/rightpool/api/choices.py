"""The choices that users write, in CamelCase."""

from __future__ import annotations

from enum import StrEnum


class Batch(StrEnum):
    """What happens to the batch when the number of chips changes."""

    PER_CHIP = "PerChip"
    GLOBAL = "Global"


class ModelState(StrEnum):
    """How weights and optimizer state lie on the chips."""

    SHARDED = "Sharded"
    REPLICATED = "Replicated"


class Capacity(StrEnum):
    """What kind of capacity may be used."""

    ON_DEMAND = "OnDemand"
    SPOT = "Spot"
    ANY = "Any"


class Objective(StrEnum):
    """What is made best among the placements that meet all targets."""

    MINIMIZE_COST = "MinimizeCost"
    MINIMIZE_TIME = "MinimizeTime"
    BALANCED = "Balanced"


class CheckpointMode(StrEnum):
    """How the program saves its state before it is moved."""

    SIGNAL = "Signal"
    PERIODIC = "Periodic"
    NONE = "None"


class Dialect(StrEnum):
    """Whose series a server's metrics page has."""

    AUTO = "Auto"
    TRITON = "Triton"
    VLLM = "vLLM"
    RAY_SERVE = "RayServe"
    BENTO_ML = "BentoML"
    ML_SERVER = "MLServer"
    KSERVE = "KServe"
    TORCH_SERVE = "TorchServe"
    SGLANG = "SGLang"
    TGI = "TGI"
    TF_SERVING = "TFServing"
    DYNAMO = "Dynamo"
    OPEN_TELEMETRY = "OpenTelemetry"
    HISTOGRAM = "Histogram"


class Autoscaler(StrEnum):
    """Who says how many replicas of a server there are."""

    FLOOR = "Floor"
    EXTERNAL = "External"


class TimeUnit(StrEnum):
    """What a histogram of times counts in."""

    SECONDS = "Seconds"
    MILLISECONDS = "Milliseconds"
    MICROSECONDS = "Microseconds"


class WarmUpMethod(StrEnum):
    """How a server is asked while it warms up."""

    GET = "GET"
    POST = "POST"


class CheckpointSignal(StrEnum):
    """Signals that a program can catch and train on after. SIGTERM and SIGINT end it, so they are not among them."""

    SIGUSR1 = "SIGUSR1"
    SIGUSR2 = "SIGUSR2"
    SIGHUP = "SIGHUP"


class BudgetAction(StrEnum):
    """What happens when a budget is spent."""

    WARN = "Warn"
    SUSPEND = "Suspend"


class Switch(StrEnum):
    """Whether a part works where it can, or not at all."""

    AUTO = "Auto"
    OFF = "Off"


class AdaptationMode(StrEnum):
    """Whether decisions are carried out, only written down, or not made."""

    AUTO = "Auto"
    RECOMMEND = "Recommend"
    OFF = "Off"


class FleetMode(StrEnum):
    """How chips that several moves want are shared out."""

    AUTO = "Auto"
    OFF = "Off"


class GivingWay(StrEnum):
    """Whether a job that runs may be moved or resized for others that gain more than it loses."""

    NEVER = "Never"
    MOVE = "Move"


class TrialVolumes(StrEnum):
    """What a trial may do to volumes that outlive a pod."""

    READ_ONLY = "ReadOnly"
    SCRATCH = "Scratch"


class AdoptionChange(StrEnum):
    """What may be done to an object that is adopted."""

    RECOMMEND = "Recommend"
    SUSPEND = "Suspend"
    RECREATE = "Recreate"
