"""The declaration of an operation on tiles: its word in the language, its types, what it computes, its error.

    @function("tanh", np.tanh)
    class TanhOp(Unary):
        \"\"\"Hyperbolic tangent\"\"\"

        name = "pk.tanh"

is a whole declaration. The frontend reads its word and types, `semantics/tile_ops.py` its value and error rule. What a
target has for it is in the target's table of instructions, under the operation's name. A type without an error rule is
refused when the module is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition

from pkc.dialect.error_bounds import Bound, Growth, at_the_ends, function_bound
from pkc.dialect.numeric import Values
from pkc.dialect.types import FLOATS, f32

Value: TypeAlias = Callable[..., Values]
_Op = TypeVar("_Op", bound=IRDLOperation)

ULPS = 4
"""Units in the last place that a function may be off, unless its declaration says otherwise."""


@dataclass(frozen=True)
class Semantics:
    """What is declared of an operation.

    `value` is the operation in numpy, in the type of its operands. `real` gives the error of a result of floats,
    `other` that of integers and conditions. `ulps` is the error of the operation itself, if not rounded to nearest; if
    it `flushes`, its results below the normal numbers may be 0.
    """

    word: str
    types: frozenset[Attribute]
    value: Value
    real: Bound | None
    other: Bound | None
    ulps: int = 0
    flushes: bool = False


OPERATIONS: dict[type[Operation], Semantics] = {}
"""Every operation with a word in the language, in the order of declaration."""


def operation(
    word: str,
    *types: Attribute,
    value: Value,
    real: Bound | None = None,
    other: Bound | None = None,
    ulps: int = 0,
    flushes: bool = False,
) -> Callable[[type[_Op]], type[_Op]]:
    """Declares an operation on elements of these types. Raises `TypeError` if one of them has no error rule."""

    def declare(cls: type[_Op]) -> type[_Op]:
        for element in types:
            if (real if element in FLOATS else other) is None:
                raise TypeError(f"`{cls.name}` has no error rule for {element}")
        made = irdl_op_definition(cls)
        OPERATIONS[made] = Semantics(word, frozenset(types), value, real, other, ulps, flushes)
        return made

    return declare


def function(
    word: str,
    value: Value,
    grown: Growth | None = None,
    *,
    ulps: int = ULPS,
    falls: bool = False,
    flushes: bool = False,
    centred: bool = False,
    steep: bool = False,
) -> Callable[[type[_Op]], type[_Op]]:
    """Declares a function of one f32 that rises wherever it is defined, or (`falls`) falls from infinity at zero.

    `grown` says what an error of the operand becomes; without it, the function is evaluated at both ends of the
    interval of the operand. If it `flushes`, it is positive, and its results below the normal numbers may be 0. If it
    is `centred`, at 0.5, it may be off by as many ulps of what it differs from that, and if it is `steep` by as many
    more as its operand is large. A `word` that is no name is what
    stands in a program in front of the operand: for what passes make of several operations.
    """
    grown = grown or at_the_ends(value)
    real = function_bound(value, grown, ulps, falls=falls, flushes=flushes, centred=centred, steep=steep)
    return operation(word, f32, value=value, real=real, ulps=ulps, flushes=flushes)


def in_f64(compute: Callable[[Values], Values]) -> Value:
    """A function computed in f64 and rounded to the type of its operand."""

    def value(a: Values) -> Values:
        return compute(a.astype(np.float64)).astype(a.dtype)

    return value


def words(kind: type[_Op], element: Attribute | None = None) -> dict[str, type[_Op]]:
    """The operations of a kind by their words; with `element`, those on elements of that type alone."""
    return {
        declared.word: op
        for op, declared in OPERATIONS.items()
        if issubclass(op, kind) and (element is None or declared.types == frozenset((element,)))
    }
