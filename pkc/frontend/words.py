"""What the words of the language are to Python: inert objects that the frontend recognises."""

from __future__ import annotations

import re
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pkc.diagnostics import PkcError
from pkc.frontend import python_errors, tree
from pkc.location import NOWHERE

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

    def shard(self, _dimension: int, /, *, zigzag: object = False) -> ArrayType:
        """One global array; each rank owns a shard of this dimension, with `zigzag` one of its first and of its last
        positions."""
        return self

    def replicate(self) -> ArrayType:
        """One global array that every rank holds."""
        return self

    def symmetric(self) -> ArrayType:
        """The same shape on each rank, addressed with `.at(r)`."""
        return self

    def scratch(self) -> ArrayType:
        """Allocated by pkc for the length of the kernel, undefined at entry."""
        return self


@dataclass(frozen=True)
class Word:
    """A word of the language; calling it outside of a kernel is an error."""

    name: str

    def __call__(self, *_args: object, **_keywords: object) -> Any:
        raise PkcError(python_errors.OutsideKernel(NOWHERE, self.name))


@dataclass(frozen=True)
class TypeWord(Word):
    """A word that makes types of arrays: an element type, or `signal`, which is a primitive too."""

    def __getitem__(self, dims: object) -> ArrayType:
        several = typing.cast("tuple[object, ...]", dims) if isinstance(dims, tuple) else (dims,)
        return ArrayType(self.name, several)


@dataclass(frozen=True)
class Reading:
    """A program of one kernel, and whether it would be read the same again."""

    program: tree.Program
    current: Callable[[], bool] = lambda: True


class Readable(ABC):
    """Marks an object of a Python file as a kernel that the frontend can read."""

    @property
    @abstractmethod
    def tree(self) -> tree.Program:
        """The kernel as a program of one kernel."""
