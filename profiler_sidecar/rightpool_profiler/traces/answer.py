"""What becomes of a request for traces: of the request, and of each rank that it asks for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from rightpool import contract

_OVER: Final = (contract.TRACE_CAPTURED, contract.TRACE_FAILED)
_RESULT: Final = ("summary", "bytes", "packed", "sha256")

MESSAGES: Final = {
    "NoRank": "the processes of this pod have other ranks",
    "NoAgent": "the agent reports from no process of this pod",
    "NoSteps": "the program made no training step in time",
    "StepTooLong": "a step takes longer than 20 s, so that its trace may not fit into the program's memory",
    "UnsupportedFramework": "only PyTorch programs on a CPU or an NVIDIA GPU, and JAX programs on a CPU, an NVIDIA GPU "
    "or a TPU, can be traced",
    "UnsupportedVersion": "it takes PyTorch 2.1 or newer, with CUDA 12.6 or newer on a GPU, or JAX 0.8 or newer",
    "JaxOnGPU": "the program computes on its GPU from several threads, or by PyTorch, too, so that a trace may end it "
    "by a CUDA error: have it call jax.profiler.trace itself where nothing is computed, or trace it on a CPU",
    "NoMemory": "the program's container has less than 512 MiB of memory left, which XLA may need for a trace: raise "
    "its memory limit",
    "ProgramProfiles": "the program runs a profiler of its own, and there can be only one",
    "CaptureFailed": "the framework's profiler failed",
    "TooLarge": "the trace is larger than 512 MiB, or that of one call of a JAX program on a GPU than 12 MiB",
    "NoSpace": "there is no room for the trace on the pod's volume",
    "TimedOut": "the traces of the pod's other ranks took all the time that there is",
    "TooManyRanks": "the pod has more ranks than are traced for one request",
}
"""What the sidecar adds to a reason that the agent, or itself, gives in a word."""


@dataclass(frozen=True, slots=True)
class RankAnswer:
    """What became of one rank."""

    rank: int
    """Its number, among all pods."""
    state: str
    """contract.TRACE_CAPTURED or contract.TRACE_FAILED."""
    reason: str = ""
    """Why it failed, in one CamelCase word; empty where it did not."""
    message: str = ""
    """The same in a sentence."""
    result: Mapping[str, Any] = field(default_factory=dict)
    """`summary`, `bytes` of the trace, `packed` bytes and `sha256` of its gzip; of one that was captured."""

    @property
    def captured(self) -> bool:
        return self.state == contract.TRACE_CAPTURED

    @classmethod
    def failed(cls, rank: int, reason: str, message: str = "") -> Self:
        """message: by default that of the reason."""
        return cls(rank, contract.TRACE_FAILED, reason, message or MESSAGES[reason])

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> Self:
        """Raises KeyError and TypeError."""
        result = {name: body[name] for name in _RESULT if name in body}
        return cls(body["rank"], body["state"], body["reason"], body["message"], result)

    def to_dict(self) -> dict[str, Any]:
        about = {"rank": self.rank, "state": self.state, "reason": self.reason, "message": self.message}
        return {**about, **self.result}


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a request so far."""

    id: str
    """As the user named the request."""
    rank: int | None
    """The rank that is asked for; None for all of this pod."""
    state: str
    """waiting, capturing, reading, captured or failed; captured if there is the trace of one rank at least."""
    reason: str = ""
    """Why it failed, in one CamelCase word; empty where it did not."""
    message: str = ""
    """The same in a sentence, or what is waited for."""
    world: int | None = None
    """Ranks of the program, in all pods, as its processes say."""
    ranks: tuple[RankAnswer, ...] = ()
    """Those of which nothing more comes, in the order of their turns."""

    @property
    def over(self) -> bool:
        return self.state in _OVER

    def asks(self, identity: str, rank: int | None) -> bool:
        return (self.id, self.rank) == (identity, rank)

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> Self:
        """Raises KeyError and TypeError."""
        return cls(
            body["id"],
            None if body["rank"] == contract.TRACE_ALL else body["rank"],
            body["state"],
            body["reason"],
            body["message"],
            body["world"],
            tuple(RankAnswer.from_dict(one) for one in body["ranks"]),
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it, as it is kept."""
        return {
            "id": self.id,
            "rank": contract.TRACE_ALL if self.rank is None else self.rank,
            "state": self.state,
            "reason": self.reason,
            "message": self.message,
            "world": self.world,
            "ranks": [one.to_dict() for one in self.ranks],
        }

    def to_wire(self) -> dict[str, Any]:
        """The answer to the operator. The ranks, whose summaries make it long, come once, at the end."""
        return self.to_dict() if self.over else {**self.to_dict(), "ranks": []}
