"""Errors of a measurement: PK940 to PK948."""

from __future__ import annotations

from dataclasses import dataclass

from pkc.diagnostics import Diagnostic


@dataclass(frozen=True)
class NoTorch(Diagnostic):
    """Measurements need torch, for the peers and for CUDA events."""

    code = "PK940"
    title = "`pkc bench` needs torch"
    note = "{reason}"
    help = "install a build of torch for CUDA 13"
    reason: str


@dataclass(frozen=True)
class NotInSuite(Diagnostic):
    """The suite has no entry for a kernel."""

    code = "PK941"
    title = "`pkc bench` does not know what to measure of kernel `{name}`"
    help = "it measures {known}: pkc/bench/suite.toml says how"
    name: str
    known: str


@dataclass(frozen=True)
class MalformedSize(Diagnostic):
    """A size is neither one number nor three."""

    code = "PK942"
    title = "`--sizes`: `{text}` is not a size"
    help = "a size is M = N = K, such as 8192, or MxNxK, such as 16x8192x8192; of all ranks together, each at least 1"
    text: str


@dataclass(frozen=True)
class UnevenSize(Diagnostic):
    """A dimension that must be divided evenly among the ranks is not a multiple of their number."""

    code = "PK943"
    title = "{dim} = {value} is not a multiple of {ranks}, the number of ranks"
    help = "`{kernel}` divides {dim} into equal shards"
    kernel: str
    dim: str
    value: int
    ranks: int


@dataclass(frozen=True)
class NotFinished(Diagnostic):
    """The GPUs hang in a measurement; the process ends at once, as these GPUs cannot be used again."""

    code = "PK944"
    title = "a measurement does not end: {reason}"
    help = "`pkc check` looks for deadlocks in a kernel's protocol"
    reason: str


@dataclass(frozen=True)
class Failed(Diagnostic):
    """Some contestants have no time, because they failed or their results are wrong."""

    code = "PK945"
    title = "pkc has no time for {names}"
    help = "the lines above say why"
    names: str


@dataclass(frozen=True)
class NoResults(Diagnostic):
    """A file was not written by `pkc bench --json`."""

    code = "PK946"
    title = "`{path}` has no results of `pkc bench`"
    note = "{reason}"
    path: str
    reason: str
