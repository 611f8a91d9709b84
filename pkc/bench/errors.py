"""What can be wrong with a measurement: PK940 to PK948."""

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
    """Nothing is known to measure a kernel beside."""

    code = "PK941"
    title = "`pkc bench` does not know what to measure of kernel `{name}`"
    help = "it measures {known}: pkc/bench/suite.toml says how"
    name: str
    known: str


@dataclass(frozen=True)
class MalformedSize(Diagnostic):
    """A size is neither a number nor three."""

    code = "PK942"
    title = "`--sizes`: `{text}` is no size"
    help = "a size is M = N = K, such as 8192, or MxNxK, such as 16x8192x8192; of all ranks together, each at least 1"
    text: str


@dataclass(frozen=True)
class UnevenSize(Diagnostic):
    """A dimension that the ranks split evenly does not divide by their number."""

    code = "PK943"
    title = "{dim} = {value} does not divide by {ranks} ranks"
    help = "`{kernel}` gives each rank an equal part of {dim}"
    kernel: str
    dim: str
    value: int
    ranks: int


@dataclass(frozen=True)
class NotFinished(Diagnostic):
    """The GPUs hang in a measurement; the process ends at once, for nothing else can be done with them."""

    code = "PK944"
    title = "a measurement does not end: {reason}"
    help = "`pkc check` looks for deadlocks in a kernel's protocol"
    reason: str


@dataclass(frozen=True)
class Failed(Diagnostic):
    """Some contestants have no time, because they failed or computed something else than the reference."""

    code = "PK945"
    title = "pkc has no time for {names}"
    help = "the lines above say why"
    names: str


@dataclass(frozen=True)
class NoResults(Diagnostic):
    """A file is not what `pkc bench --json` writes."""

    code = "PK946"
    title = "`{path}` holds no results of `pkc bench`"
    note = "{reason}"
    path: str
    reason: str
