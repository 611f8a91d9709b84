"""What code generation hands to the runtime: machine code, and how it wants to be launched.

A kernel takes one struct by value. Its fields follow each other as listed in `Artifact.fields`, each at its natural
alignment (tensor maps at 128 bytes); the runtime fills them in from arrays, dimensions and the mesh, and knows
nothing else about the kernel.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from pkc.dialect.words import RANKS

Extent: TypeAlias = str | int | tuple[str | int, int]
"""A dimension by name, a constant, or a pair of one of them and a block size: as many as `pk.block_number` numbers
blocks of that size."""


ScalarType: TypeAlias = Literal["f32", "i32"]


@dataclass(frozen=True)
class ArrayParameter:
    """One array of the kernel: `dims` outermost first, by name or constant.

    `layout` is `private`, `shard`, `replicate` or `symmetric`; all but private lie in the symmetric heap. A
    `scratch` array is allocated by the runtime, any other is given by the caller. `shard` is the dimension that is
    sharded over the ranks, ceil(extent / ranks) positions each; `zigzag` says in which order (`pkc/dialect/blocks.py`).
    `written` is known above the machine level. Of `packets` each element takes twice its bytes, zero when allocated.
    What is `local` no other rank reaches, whatever its layout, as is known from the roles level on: it may lie outside
    of the symmetric heap. What is `kept` other ranks may write before their own launch has begun on this rank: between
    launches it is of these dimensions of the kernel alone. Rows of what is `padded` begin at multiples of 32 bytes.
    """

    name: str
    dtype: str
    dims: tuple[str | int, ...]
    layout: Literal["private", "shard", "replicate", "symmetric"]
    shard: int | None
    scratch: bool
    zigzag: bool = False
    written: bool = False
    packets: bool = False
    local: bool = False
    kept: bool = False
    padded: bool = False


@dataclass(frozen=True)
class SignalParameter:
    """Counters in the symmetric heap, u32, zero when they are allocated.

    Those that `restart` count from zero in each launch: they are cleared on their rank before anything of a launch
    runs there, its copy engines included. Others are never reset.
    """

    name: str
    dims: tuple[Extent, ...]
    restarts: bool = False


@dataclass(frozen=True)
class TensorMaps:
    """Two CUtensorMaps, `field[2]`: of all whole shards, and of the one shard that is shorter.

    Dimensions innermost first are those of the array, except that dimension `split` (a position in `dims`), if there
    is one, has only the positions within a shard, and a further dimension counts the shards: ranks for a sharded array
    (stride: the heap's), otherwise the shards of one rank's copy. An array in the heap that is not sharded has the rank
    as its outermost dimension. `box` is innermost first, one entry for each map dimension. If it has one more, rows,
    whose length is a constant, are in parts of `box[0]` elements, which a further dimension counts, the outermost. If
    they are `joined`, the last two dimensions of the array, both constants, are one of the map.

    With length = ceil(extent / ranks) and whole = extent // length, the first map has min(whole, ranks) shards of
    `length` positions, the second map one shard of extent - whole * length positions that begins where the first map
    ends; if that is empty, the second map repeats the first.
    """

    field: str
    array: str
    box: tuple[int, ...]
    swizzle: Literal[0, 32, 64, 128]
    split: int | None
    joined: bool = False


@dataclass(frozen=True)
class Base:
    """u64: the address of an array or signal in the heap of rank 0, or, if private, in this rank's memory."""

    field: str
    array: str


@dataclass(frozen=True)
class HeapStride:
    """u64: the distance in bytes between the heaps of one rank and the next."""

    field: str


@dataclass(frozen=True)
class Dimension:
    """i32: the value of a dimension."""

    field: str
    dim: str


@dataclass(frozen=True)
class RankField:
    """i32: this rank, or the number of ranks."""

    field: str
    what: Literal["rank", "ranks"]


@dataclass(frozen=True)
class Scalar:
    """i32 or f32: a scalar parameter of the kernel."""

    field: str
    name: str
    dtype: ScalarType


@dataclass(frozen=True)
class Epochs:
    """u64: the address of one u32 for each CTA, zero when allocated; a CTA adds one at each launch, at its end."""

    field: str


@dataclass(frozen=True)
class Alarm:
    """u64: the address of the alarm of the mesh (`pkc/runtime/alarm.py`)."""

    field: str


@dataclass(frozen=True)
class Interface:
    """What a kernel is called with, known before it is compiled to machine code.

    `arrays` has those that the runtime allocates, too; `dims` are those of run time, without `ranks`.
    """

    name: str
    arrays: tuple[ArrayParameter, ...]
    scalars: tuple[tuple[str, ScalarType], ...]
    dims: tuple[str, ...]

    @cached_property
    def passed(self) -> Sequence[ArrayParameter]:
        """The arrays that the caller gives."""
        return [array for array in self.arrays if not array.scratch]

    @cached_property
    def names(self) -> Sequence[str]:
        """The parameters that the caller gives."""
        return [*(array.name for array in self.passed), *(name for name, _ in self.scalars)]


def named_dims(arrays: Iterable[ArrayParameter], signals: Iterable[SignalParameter]) -> dict[str, None]:
    """The dimensions that arrays and counters name, each once, without `ranks`."""
    extents = [dim for array in arrays for dim in array.dims]
    extents += [extent[0] if isinstance(extent, tuple) else extent for signal in signals for extent in signal.dims]
    return {dim: None for dim in extents if isinstance(dim, str) and dim != RANKS}


Field: TypeAlias = TensorMaps | Base | HeapStride | Dimension | RankField | Scalar | Epochs | Alarm


@dataclass(frozen=True)
class Probe:
    """What one `record` instruction records: the role `role` (a position in `Trace.roles`), the `kind` (`KINDS` of
    `pk-trace`), the name of what it tells of, and the line of the program."""

    role: int
    kind: str
    what: str
    line: str


@dataclass(frozen=True)
class Trace:
    """Where a traced kernel writes its records, and what they mean.

    `array` is a scratch array `[ctas, roles, records, 4]` of i32; `ctas` and `records` are the names of its dimensions,
    `role` the names of the roles. A record is nanoseconds modulo 2^32, a position in `points`, the number of a task
    or -1, and a value. Instead of record 0, the first word of a role's row says how many records it would have written.
    """

    array: str
    ctas: str
    records: str
    roles: tuple[str, ...]
    points: tuple[Probe, ...]


@dataclass(frozen=True)
class Wait:
    """A bounded wait of the role `role` for the counters or the channel `awaits`; `until` is what `UNTIL` says.

    Or an index of the array `awaits` that the role looks at; `until` says which (`PLACE`).
    """

    role: str
    awaits: str
    until: str
    file: str
    line: int
    column: int


@dataclass(frozen=True)
class Waits:
    """Where a kernel whose waits are bounded reports them, and what the reports mean.

    `reports` is a scratch array `[ctas, 2 * warps, 8]` of i32, zero when it is allocated; `ctas` is the name of its
    first dimension. A report is why (1: it waited too long, 2: because another did; 3: an index is out of range, in the
    second half of the reports of a CTA), a position in `points`, the number of a task or -1, the value seen, the value
    wanted, or what the index must be less than, the low half of the address looked at, and two unused words.
    """

    reports: str
    ctas: str
    warps: int
    points: tuple[Wait, ...]


@dataclass(frozen=True, repr=False)
class Artifact:
    """Machine code for one target; it does not depend on sizes or on the number of ranks.

    Artifacts of one text are equal, whatever NVRTC made of it: ranks that compile it each for itself, or find what
    another one compiled, must come to the same answer, since an unequal artifact is another kernel, with counters of
    its own. (Of several texts that spill registers one is chosen by what NVRTC says of each: ranks share that choice by
    the cache.)
    """

    name: str
    target: str
    cubin: bytes = field(compare=False)
    arrays: tuple[ArrayParameter, ...]
    signals: tuple[SignalParameter, ...]
    fields: tuple[Field, ...]
    threads: int
    shared_bytes: int
    cluster: int
    comm_sms: int
    """CTAs of the grid that only communicate; they are the last ones. The grid has one CTA for each SM."""
    source: str = ""
    """The digest of the CUDA C++, which all ranks that launch one kernel share: of the same text, NVRTC may make other
    machine code on each. That of the machine code, where nothing else is known."""
    trace: Trace | None = None
    """Set if the kernel is traced."""
    waits: Waits | None = None
    """Set if the waits of the kernel are bounded."""
    queue: bool = False
    """Whether CTAs take tasks from a queue: launches share its counter, and so must not run at the same time."""
    engines: str = ""
    """What copy engines do, as IR: a kernel with one `pk.role copy_engine` for each engine, without `pk.epoch`.

    Streams run the operations of a role, tasks at once and all else one after the other: `pk.copy`, `pk.wait` and
    `pk.reset` for counters of this rank, `pk.raise` for those of any. The rest is integer arithmetic on dimensions, the
    rank and the number of ranks, which the host carries out when it prepares a launch.
    """

    def __post_init__(self) -> None:
        if not self.source:
            object.__setattr__(self, "source", hashlib.sha256(self.cubin).hexdigest())

    def __repr__(self) -> str:
        return f"<pkc artifact {self.name} for {self.target}, {len(self.cubin)} bytes>"

    @property
    def interface(self) -> Interface:
        """What a launch of this machine code needs; only the scalars and dimensions that it uses, and none that the
        launch itself has."""
        fields = (field for field in self.fields if isinstance(field, Scalar))
        scalars: tuple[tuple[str, ScalarType], ...] = tuple((field.name, field.dtype) for field in fields)
        dims = named_dims(self.arrays, self.signals)
        dims |= {field.dim: None for field in self.fields if isinstance(field, Dimension)}
        if self.waits is not None:
            dims.pop(self.waits.ctas)
        return Interface(self.name, self.arrays, scalars, tuple(dims))
