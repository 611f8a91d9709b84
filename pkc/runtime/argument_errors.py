"""Errors of what a kernel is called with."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic


class Arguments(Diagnostic):
    """A kernel lacks an argument, or gets one that it does not take."""

    code = "PK840"
    title = "`{kernel}` takes {expected}; {found}"
    kernel: str
    expected: str
    found: str


class NotSymmetric(Diagnostic):
    """An array that other ranks reach is not in the symmetric heap of the mesh, or has another layout; or what is in
    place of one that they do not reach is no tensor, or begins too low."""

    code = "PK841"
    title = "`{array}` of `{kernel}` {problem}"
    help = '`mesh.empty({shape}, "{dtype}", "{layout}"{shard})` makes an array that fits'
    kernel: str
    array: str
    problem: str
    shape: str
    dtype: str
    layout: str
    shard: str


class RankArrays(Diagnostic):
    """An array that no other rank reaches is not given once for each rank that this process drives."""

    code = "PK842"
    title = "`{array}` of `{kernel}` is {lies}: {found} for {ranks} ranks"
    help = "pass a list with one tensor for each rank of this process"
    kernel: str
    array: str
    lies: str
    found: str
    ranks: int


class ArgumentType(Diagnostic):
    """An array has elements of another type."""

    code = "PK843"
    title = "`{array}` of `{kernel}` has elements of type {found}; expected {expected}"
    kernel: str
    array: str
    found: str
    expected: str


class ArgumentShape(Diagnostic):
    """An array has another shape than the parameter, or than the array of another rank."""

    code = "PK844"
    title = "`{array}` of `{kernel}` has shape {found} on rank {rank}; expected {expected}"
    kernel: str
    array: str
    rank: int
    found: str
    expected: str


class ArgumentStrides(Diagnostic):
    """The elements of an array do not follow each other."""

    code = "PK845"
    title = "`{array}` of `{kernel}` has strides {found} on rank {rank}; expected {expected}"
    help = "`.contiguous()` makes a copy that fits"
    kernel: str
    array: str
    rank: int
    found: str
    expected: str


class ArgumentDevice(Diagnostic):
    """The array of a rank is not on its GPU."""

    code = "PK846"
    title = "`{array}` of `{kernel}` is on {found}; rank {rank} uses GPU {device}"
    help = '`.to("cuda:{device}")` makes a copy there'
    kernel: str
    array: str
    rank: int
    found: str
    device: int


class LaunchDimension(Diagnostic):
    """A dimension has no value, or two arrays, or an array and a setting, give it different values."""

    code = "PK848"
    title = "dimension `{dim}` of `{kernel}` {problem}"
    kernel: str
    dim: str
    problem: str


class LaunchScalar(Diagnostic):
    """A scalar is not a number of its type."""

    code = "PK849"
    title = "`{name}` of `{kernel}` is {value}, which is not of type {dtype}"
    kernel: str
    name: str
    value: str
    dtype: str


class NotATensor(Diagnostic):
    """The argument for an array is neither a tensor nor an array of a mesh."""

    code = "PK858"
    title = "`{array}` of `{kernel}` is {found}; expected a tensor on the GPU"
    help = '`torch.as_tensor(value, device="cuda")` makes one; `pkc.simulate` takes arrays of numpy'
    kernel: str
    array: str
    found: str


class ArgumentAlignment(Diagnostic):
    """The memory of an array does not begin at a multiple of 16 bytes."""

    code = "PK853"
    title = "`{array}` of `{kernel}` begins at address {address} on rank {rank}, which is no multiple of 16 bytes"
    help = "pass a tensor that is not a view into another one, or one that begins at a multiple of 16 bytes"
    kernel: str
    array: str
    rank: int
    address: str


class OverlappingArrays(Diagnostic):
    """Two arguments have memory in common, and the kernel writes one of them."""

    code = "PK867"
    title = "`{first}` and `{second}` of `{kernel}` overlap on rank {rank}, and the kernel writes `{written}`"
    help = "pass another array: tasks may read the one when others have already written the other"
    kernel: str
    first: str
    second: str
    rank: int
    written: str
