"""The words of the language for kernels that are written as Python functions.

    from pkc.language import *

A kernel is read, never run, so all of this is inert: it lets annotations evaluate when the function is
defined, and lets editors and type checkers know the names. What the words mean is in docs/language.md.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, overload

from pkc.diagnostics import PkcError
from pkc.frontend import python_errors
from pkc.location import NOWHERE

if TYPE_CHECKING:
    from pkc.calls import Calls
    from pkc.frontend import tree
    from pkc.runtime.arrays import Array
    from pkc.runtime.mesh import Mesh

_DIMENSION = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Size:
    """What arithmetic on dimensions gives; only its text in the source counts."""

    def _combine(self, _other: object = None) -> Size:
        return Size()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _combine
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _combine
    __neg__ = _combine


@dataclass(frozen=True)
class Dim(Size):
    """A run-time dimension, known by its name."""

    name: str


def dims(names: str) -> Any:
    """`M, N = dims("M N")`: the dimensions of these names, which commas or spaces separate."""
    words = names.replace(",", " ").split()
    for word in words or [names]:
        if not _DIMENSION.fullmatch(word):
            raise PkcError(python_errors.InvalidDimension(NOWHERE, word))
    return tuple(Dim(word) for word in words)


@dataclass(frozen=True)
class ArrayType:
    """The type of an array parameter: `bf16[M, K].shard(0)`. Keeps what its dimensions evaluate to."""

    base: str
    dims: tuple[object, ...]

    def shard(self, _dimension: int, /) -> ArrayType:
        """One global array, split over the ranks in this dimension."""
        return self

    def replicate(self) -> ArrayType:
        """One global array that every rank holds."""
        return self

    def symmetric(self) -> ArrayType:
        """The same shape on each rank, addressed with `.at(r)`."""
        return self

    def scratch(self) -> ArrayType:
        """Allocated for the length of the kernel."""
        return self


@dataclass(frozen=True)
class Word:
    """A word of the language; calling it outside a kernel is a mistake."""

    name: str

    def __call__(self, *_args: object, **_keywords: object) -> Any:
        raise PkcError(python_errors.OutsideKernel(NOWHERE, self.name))


@dataclass(frozen=True)
class TypeWord(Word):
    """A word that makes types of arrays: an element type, or `signal`, which is a primitive too."""

    def __getitem__(self, dims: object) -> ArrayType:
        several = typing.cast("tuple[object, ...]", dims) if isinstance(dims, tuple) else (dims,)
        return ArrayType(self.name, several)


class Kernel:
    """A kernel that Python can call, written as a function (which is read and not run) or in a file.

    `kernel(a, b, c)` launches it: arrays, scalars and constants by position or by name, as docs/runtime.md says.
    """

    def __init__(self, read: Callable[[], Reading], name: str, options: Mapping[str, object] | None = None) -> None:
        self._read = read
        self.name = name
        self.options: dict[str, str] = {key: _word(value) for key, value in (options or {}).items()}
        """What overrides its own schedule."""
        self._variants: dict[tuple[tuple[str, str], ...], Kernel] = {}

    @property
    def tree(self) -> tree.Program:
        """The kernel as a program of one kernel, read anew: captured constants have their present values."""
        return self._read().program

    @cached_property
    def calls(self) -> Calls:
        """What is compiled for the calls so far."""
        from pkc.calls import Calls

        return Calls(self._read, self.options)

    def __call__(self, /, *arguments: Any, stream: Any = None, **named: Any) -> None:
        """Launch the kernel on all ranks of this process; returns before it ends. Raises `PkcError`.

        Private arrays are torch tensors on the GPU (a list with one for each rank if this process drives several), the
        others are arrays of a mesh; scalars and constants are numbers. A name may also be that of a dimension which no
        array shows. The first call with other constants compiles.

        `stream` is as for `LoadedKernel`. Without it, it is torch's current stream if the program uses torch.
        """
        self.calls.launch(arguments, named, stream)

    def empty(self, array: str, mesh: Mesh | None = None, /, **dims: Any) -> Array:
        """An array that fits the parameter of this name, content undefined: `gemm_rs.empty("C", M=8192, N=8192)`.

        It is one of `mesh`, or of the program's own, `pkc.mesh()`, and all ranks must make it. Raises `PkcError`.
        """
        return self.calls.empty(array, mesh, dims)

    def with_schedule(self, /, **options: object) -> Kernel:
        """The same kernel with another schedule: `gemm_rs.with_schedule(overlap="inter_sm", comm_sms=16)(a, b, c)`.

        What is not named stays as it is. The same options give the same kernel, which compiles once.
        """
        merged = self.options | {key: _word(value) for key, value in options.items()}
        key = tuple(sorted(merged.items()))
        if key not in self._variants:
            self._variants[key] = Kernel(self._read, self.name, merged)
        return self._variants[key]

    def __repr__(self) -> str:
        return f"<pkc kernel {self.name}>"


def _word(value: object) -> str:
    """A value of the schedule as the command line has it."""
    return value.name if isinstance(value, Word) else str(value)


class FunctionKernel(Kernel):
    """A kernel that is a Python function; `schedule` holds the keywords of its decorator."""

    def __init__(self, function: FunctionType, schedule: dict[str, object]) -> None:
        if not isinstance(function, FunctionType):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise PkcError(python_errors.NotAFunction(NOWHERE, type(function).__name__))
        super().__init__(self._read_function, function.__name__)
        self.function = function
        self.schedule = schedule
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__

    def _read_function(self) -> Reading:
        from pkc.frontend.python import read_captured

        return read_captured(self.function, self.schedule)


@dataclass(frozen=True)
class Reading:
    """A program of one kernel, and whether it would be read the same again."""

    program: tree.Program
    current: Callable[[], bool] = lambda: True


@overload
def kernel(fn: Callable[..., Any], /) -> Kernel: ...
@overload
def kernel(**schedule: object) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(fn: Any = None, /, **schedule: object) -> Any:
    """Make a function a kernel: `@kernel`, or `@kernel(overlap="intra_sm", stages=4)`."""
    if fn is not None:
        return FunctionKernel(fn, schedule)
    return partial(FunctionKernel, schedule=schedule)


# To a type checker everything in a kernel is `Any`: it cannot know of tiles.

# Types of parameters
bf16: Any = TypeWord("bf16")
f16: Any = TypeWord("f16")
f32: Any = TypeWord("f32")
i32: Any = TypeWord("i32")
e4m3: Any = TypeWord("e4m3")
e5m2: Any = TypeWord("e5m2")
signal: Any = TypeWord("signal")
const: Any = Word("const")

# Values
inf: Any = float("inf")
rank: Any = Dim("rank")
ranks: Any = Dim("ranks")

# Lists to loop over
blocks: Any = Word("blocks")
tasks: Any = Word("tasks")
ring: Any = Word("ring")

# Tiles
zeros: Any = Word("zeros")
full: Any = Word("full")
cast: Any = Word("cast")
positions: Any = Word("positions")
gather: Any = Word("gather")

# Functions: written by `python -m tools.operations_page`
exp: Any = Word("exp")
exp2: Any = Word("exp2")
log2: Any = Word("log2")
sqrt: Any = Word("sqrt")
tanh: Any = Word("tanh")
log: Any = Word("log")
erf: Any = Word("erf")
rsqrt: Any = Word("rsqrt")
sigmoid: Any = Word("sigmoid")
where: Any = Word("where")
rowmax: Any = Word("rowmax")
rowmin: Any = Word("rowmin")
rowsum: Any = Word("rowsum")

# The protocol
store: Any = Word("store")
store_add: Any = Word("store_add")
reduce: Any = Word("reduce")
all_reduce: Any = Word("all_reduce")
signal_all: Any = Word("signal_all")
wait: Any = Word("wait")
barrier: Any = Word("barrier")

# Roles and the schedule
role: Any = Word("role")
loader: Any = Word("loader")
consumer: Any = Word("consumer")
storer: Any = Word("storer")
communicator: Any = Word("communicator")
schedule: Any = Word("schedule")
none: Any = Word("none")
intra_sm: Any = Word("intra_sm")
inter_sm: Any = Word("inter_sm")
copy_engine: Any = Word("copy_engine")
natural: Any = Word("natural")
own_first: Any = Word("own_first")
own_last: Any = Word("own_last")
push: Any = Word("push")

__all__ = [
    "all_reduce",
    "barrier",
    "bf16",
    "blocks",
    "cast",
    "communicator",
    "const",
    "consumer",
    "copy_engine",
    "dims",
    "e4m3",
    "e5m2",
    "erf",
    "exp",
    "exp2",
    "f16",
    "f32",
    "full",
    "gather",
    "i32",
    "inf",
    "inter_sm",
    "intra_sm",
    "kernel",
    "loader",
    "log",
    "log2",
    "natural",
    "none",
    "own_first",
    "own_last",
    "positions",
    "push",
    "rank",
    "ranks",
    "reduce",
    "ring",
    "role",
    "rowmax",
    "rowmin",
    "rowsum",
    "rsqrt",
    "schedule",
    "sigmoid",
    "signal",
    "signal_all",
    "sqrt",
    "store",
    "store_add",
    "storer",
    "tanh",
    "tasks",
    "wait",
    "where",
    "zeros",
]
