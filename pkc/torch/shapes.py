"""Shapes of what the operators take and give. Extents may be symbolic: they are compared and divided alone."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

torch: Any = importlib.import_module("torch")


@dataclass(slots=True)
class Flat:
    """A tensor as the matrix whose rows are all its dimensions but the last one, those along `dim` outermost.

    `rows` are the extents of the dimensions that are its rows, in this order.
    """

    dim: int
    rows: tuple[Any, ...]

    def of(self, tensor: Any) -> Any:
        """The matrix of such a tensor."""
        front = tensor.movedim(self.dim, 0) if self.dim else tensor
        return front if len(self.rows) == 1 else front.flatten(0, -2)

    def back(self, matrix: Any) -> Any:
        """The tensor of such a matrix, a view."""
        front = matrix if len(self.rows) == 1 else matrix.view(*self.rows, matrix.shape[-1])
        return front.movedim(0, self.dim) if self.dim else front

    def empty(self, like: Any, columns: Any) -> Any:
        """A tensor of other columns, laid out as `back` does."""
        front = like.new_empty((*self.rows, columns))
        return front.movedim(0, self.dim) if self.dim else front

    def times(self, ranks: int) -> Flat:
        """With so many times the extent along `dim`."""
        return Flat(self.dim, (self.rows[0] * ranks, *self.rows[1:]))

    def over(self, ranks: int) -> Flat:
        """With the extent along `dim` divided by so many ranks."""
        return Flat(self.dim, (self.rows[0] // ranks, *self.rows[1:]))


def flat(shape: Sequence[Any], dim: int) -> Flat:
    """A tensor of this shape as a matrix. `dim` is none of its columns."""
    rows = [*shape[:-1]]
    rows.insert(0, rows.pop(dim))
    return Flat(dim, tuple(rows))


def along(operator: str, what: str, dim: int, shape: Sequence[Any]) -> int:
    """A dimension counted from the first one. Raises `ValueError` as torch's operators do."""
    found = dim + len(shape) if dim < 0 else dim
    if len(shape) < 2:
        raise ValueError(f"{operator}: A must have at least two dimensions, not {len(shape)}")
    if not 0 <= found < len(shape):
        raise ValueError(f"{operator}: {what} is {dim}; A has {len(shape)} dimensions")
    return found


def check_matmul(operator: str, a: Any, *rights: Any, gathered: int = 1) -> None:
    """Raises `ValueError` unless A, or what is gathered from so many ranks along its columns, can be multiplied by each
    of the matrices."""
    inner, once = a.shape[-1] * gathered, " once it is gathered" if gathered > 1 else ""
    for number, right in enumerate(rights):
        name = f"Bs[{number}]" if len(rights) > 1 else "B"
        if len(right.shape) != 2:
            raise ValueError(f"{operator}: {name} must be a matrix; it has {len(right.shape)} dimensions")
        if right.dtype != a.dtype:
            raise ValueError(f"{operator}: {name} is {right.dtype}, and A is {a.dtype}")
        torch._check_value(
            right.shape[0] == inner,
            lambda name=name, right=right: (
                f"{operator}: A has {inner} columns{once}, and {name} has {right.shape[0]} rows"
            ),
        )


def check_shared(operator: str, extent: Any, dim: int, ranks: int) -> None:
    """Raises `ValueError` unless so many ranks can share the positions along a dimension."""
    torch._check_value(
        extent % ranks == 0,
        lambda: f"{operator}: {extent} positions along dimension {dim} cannot be shared by {ranks} ranks",
    )


def check_reduction(operator: str, reduce_op: str) -> bool:
    """Whether the reduction is an average. Raises `ValueError` unless it is that or a sum."""
    if reduce_op not in ("sum", "avg"):
        raise ValueError(f"{operator}: reduce_op is {reduce_op!r}; it must be 'sum' or 'avg'")
    return reduce_op == "avg"
