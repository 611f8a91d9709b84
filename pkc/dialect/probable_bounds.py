"""How far a program's f32 value is likely to be from the real one: reductions and matmuls, whose roundings cancel.

Higham and Mary, A New Approach to Probabilistic Rounding Error Analysis, SIAM J. Sci. Comput. 41 (2019): if each
rounding has mean zero, whatever those before it were, n of them that are at most c each add up to no more than
LAMBDA sqrt(n) c, with a probability of at least 1 - 2 exp(-LAMBDA^2 / 2). In the worst case it is n c. Here the
roundings of one sum are taken together so, from its first MMA to its last; all other errors are added up as in the
worst case, also those that several elements have in common. Of both bounds of a sum the smaller one is taken.

Tensor cores cut off instead of rounding. Their errors have the sign of the partial sum, so their mean is zero only
where that sign is as likely to be one as the other, as for the inputs that `pkc run` draws.
"""

from __future__ import annotations

import math

import numpy as np

from pkc.dialect import reduction_bounds, tile
from pkc.dialect.error_bounds import Bound, total
from pkc.dialect.numeric import UNIT, Values
from pkc.dialect.ranges import MOST, Bounded, Chain

LAMBDA = 8.0
"""Of Higham and Mary."""

EXCEEDED = 2 * math.exp(-(LAMBDA**2) / 2)
"""The probability that a sum is further off, at most: 2.5e-14."""


def sum_of_row(value: Values, a: Bounded) -> Bounded:
    count = a.value.shape[-1]
    sizes = np.abs(a.value).sum(axis=-1)
    own = sizes * (UNIT * min(count, LAMBDA * math.sqrt(count)))
    error = own if a.error is None else own + a.error.sum(axis=-1) * (1 + count * UNIT)
    if a.ordinary and sizes.max() + error.max() <= MOST:
        return Bounded(value, error, True)
    return reduction_bounds.sum_of_row(value, a)


def mma(op: tile.AnyMmaOp) -> Bound:
    count, each = reduction_bounds.mma_terms(op)
    careful = reduction_bounds.mma(op)

    def bound(value: Values, a: Bounded, b: Bounded, acc: Bounded) -> Bounded:
        given = a, b
        a, b = (reduction_bounds.mma_factor(op, x) for x in given)
        sizes = reduction_bounds.mma_sizes(a, b, acc)
        largest = sizes.max()
        sizes *= each
        before = acc.chain or Chain(np.zeros(()), np.zeros(()), acc.error)
        own, squares = before.own + count * sizes, before.squares + count * sizes**2
        rest = total(before.rest, reduction_bounds.mma_operands(a, b))
        error = np.minimum(own, LAMBDA * np.sqrt(squares))
        if rest is not None:
            error += rest
        if a.ordinary and b.ordinary and acc.ordinary and largest + error.max() <= MOST / 2:
            return Bounded(value, error, True, Chain(own, squares, rest))
        return careful(value, *given, acc)

    return bound
