"""Errors of a measurement: PK940 to PK948."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic


class NoTorch(Diagnostic):
    """Measurements need torch, for the peers and for CUDA events."""

    code = "PK940"
    title = "`pkc bench` needs torch"
    note = "{reason}"
    help = "install a build of torch for CUDA 13"
    reason: str


class NotInSuite(Diagnostic):
    """The suite has no entry for a kernel."""

    code = "PK941"
    title = "`pkc bench` does not know what to measure of kernel `{name}`"
    help = "it measures {known}: pkc/bench/suite.toml says how"
    name: str
    known: str


class MalformedSize(Diagnostic):
    """A size is not spelled as the kernel's family spells sizes."""

    code = "PK942"
    title = "`--sizes`: `{text}` is not a size"
    help = "a size is {form}; of all ranks together, each number at least 1"
    text: str
    form: str


class UnevenSize(Diagnostic):
    """A dimension that must be divided evenly among the ranks is not a multiple of their number, or of twice it."""

    code = "PK943"
    title = "{dim} = {value} is not a multiple of {pieces}"
    help = "`{kernel}` divides {dim} into {pieces} equal pieces, for {ranks} ranks"
    kernel: str
    dim: str
    value: int
    pieces: int
    ranks: int


class NotFinished(Diagnostic):
    """The GPUs hang in a measurement; the process ends at once, as these GPUs cannot be used again."""

    code = "PK944"
    title = "a measurement does not end: {reason}"
    help = "`pkc check` looks for deadlocks in a kernel's protocol"
    reason: str


class Failed(Diagnostic):
    """Some contestants have no time, because they failed or their results are wrong."""

    code = "PK945"
    title = "pkc has no time for {names}"
    help = "the lines above say why"
    names: str


class NoResults(Diagnostic):
    """A file was not written by `pkc bench --json`."""

    code = "PK946"
    title = "`{path}` has no results of `pkc bench`"
    note = "{reason}"
    path: str
    reason: str
