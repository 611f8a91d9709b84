"""The words of the language for kernels that are written as Python functions.

    from pkc.language import *

A kernel is read, never run, so all of this is inert: it lets annotations evaluate when the function is
defined, and lets editors and type checkers know the names. What the words mean is in docs/language.md.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, overload

from pkc.diagnostics import PkcError
from pkc.frontend import errors
from pkc.location import NOWHERE

if TYPE_CHECKING:
    from pkc.frontend import tree

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
            raise PkcError(errors.InvalidDimension(NOWHERE, word))
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
        raise PkcError(errors.OutsideKernel(NOWHERE, self.name))


@dataclass(frozen=True)
class TypeWord(Word):
    """A word that makes types of arrays: an element type, or `signal`, which is a primitive too."""

    def __getitem__(self, dims: object) -> ArrayType:
        several = typing.cast("tuple[object, ...]", dims) if isinstance(dims, tuple) else (dims,)
        return ArrayType(self.name, several)


class Kernel:
    """A kernel written as a Python function, which is read and not run."""

    def __init__(self, function: FunctionType, schedule: dict[str, object]) -> None:
        if not isinstance(function, FunctionType):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise PkcError(errors.NotAFunction(NOWHERE, type(function).__name__))
        self.function = function
        self.schedule = schedule
        self.name = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__

    @property
    def tree(self) -> tree.Program:
        """The kernel as a program of one kernel, read anew: captured constants have their present values."""
        from pkc.frontend.python import read_function

        return read_function(self.function, self.schedule)

    def __repr__(self) -> str:
        return f"<pkc kernel {self.name}>"


@overload
def kernel(fn: Callable[..., Any], /) -> Kernel: ...
@overload
def kernel(**schedule: object) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(fn: Any = None, /, **schedule: object) -> Any:
    """Make a function a kernel: `@kernel`, or `@kernel(overlap="intra_sm", stages=4)`."""
    if fn is not None:
        return Kernel(fn, schedule)
    return partial(Kernel, schedule=schedule)


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
exp: Any = Word("exp")
exp2: Any = Word("exp2")
log2: Any = Word("log2")
sqrt: Any = Word("sqrt")
where: Any = Word("where")
rowmax: Any = Word("rowmax")
rowsum: Any = Word("rowsum")
positions: Any = Word("positions")
gather: Any = Word("gather")

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
tma: Any = Word("tma")
bulk: Any = Word("bulk")
register: Any = Word("register")
multimem: Any = Word("multimem")
push: Any = Word("push")

__all__ = [
    "all_reduce",
    "barrier",
    "bf16",
    "blocks",
    "bulk",
    "cast",
    "communicator",
    "const",
    "consumer",
    "copy_engine",
    "dims",
    "e4m3",
    "e5m2",
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
    "log2",
    "multimem",
    "natural",
    "none",
    "own_first",
    "own_last",
    "positions",
    "push",
    "rank",
    "ranks",
    "reduce",
    "register",
    "ring",
    "role",
    "rowmax",
    "rowsum",
    "schedule",
    "signal",
    "signal_all",
    "sqrt",
    "store",
    "store_add",
    "storer",
    "tasks",
    "tma",
    "wait",
    "where",
    "zeros",
]
