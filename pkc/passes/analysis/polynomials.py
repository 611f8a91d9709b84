"""Integers of a kernel as polynomials in what is not known yet: sizes, ranks, CTAs, the launch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from pkc.dialect import blocks
from pkc.dialect.coordinates import BlockCountOp, CtasOp, DimOp, EpochOp, RankOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.types import RANKS, BlockType
from pkc.passes.analysis.dependence import same_value

EPOCH = "epoch"
HALF_EPOCH = "epoch / 2"
"""Half of the launches before this one, rounded up: those that took the same one of two counters as the last."""
HALF_OF_LAUNCHES = "(epoch + 1) / 2"
"""Half of the launches so far, rounded up: those that took the same one of two counters as this one."""
OF_THIS_RANK = " of this rank"
"""In a symbol: what may be another number on each rank."""


class Polynomial:
    """A sum of products of symbols. Symbols stand for numbers that are not negative."""

    def __init__(self, terms: Mapping[tuple[str, ...], int]) -> None:
        self._terms = {symbols: factor for symbols, factor in terms.items() if factor}

    @staticmethod
    def of(symbol: str) -> Polynomial:
        return Polynomial({(symbol,): 1})

    @staticmethod
    def constant(number: int) -> Polynomial:
        return Polynomial({(): number})

    def __add__(self, other: Polynomial) -> Polynomial:
        terms = Counter(self._terms)
        for symbols, factor in other._terms.items():
            terms[symbols] += factor
        return Polynomial(terms)

    def __mul__(self, other: Polynomial) -> Polynomial:
        terms: Counter[tuple[str, ...]] = Counter()
        for one, factor in self._terms.items():
            for more, by in other._terms.items():
                terms[tuple(sorted((*one, *more)))] += factor * by
        return Polynomial(terms)

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + other * Polynomial.constant(-1)

    @property
    def number(self) -> int | None:
        """What it is, if it has no symbols."""
        return self._terms.get((), 0) if set(self._terms) <= {()} else None

    @property
    def is_zero(self) -> bool:
        return not self._terms

    @property
    def differs_by_rank(self) -> bool:
        """Whether it may be another number on each rank."""
        return any(OF_THIS_RANK in symbol for symbols in self._terms for symbol in symbols)

    @property
    def has_negative_terms(self) -> bool:
        return any(factor < 0 for factor in self._terms.values())

    @property
    def surely_not_zero(self) -> bool:
        """Whether it is another number than zero for some sizes.

        So it is if all terms have one sign, or if only independent symbols are left beside a common factor.
        """
        signs = {factor > 0 for factor in self._terms.values()}
        counts = [Counter(symbols) for symbols in self._terms]
        common = Counter[str](counts[0] if counts else ())
        for count in counts:
            common &= count
        free = all(_is_free(symbol) for count in counts for symbol in count - common)
        return bool(self._terms) and (len(signs) == 1 or free)

    def __str__(self) -> str:
        texts = [_term(symbols, factor) for symbols, factor in sorted(self._terms.items(), reverse=True)]
        return " + ".join(texts).replace("+ -", "- ") or "0"


def _is_free(symbol: str) -> bool:
    """Whether a symbol takes all values from 1 on, whatever the others are."""
    return symbol in (EPOCH, RANKS) or symbol.startswith("ctas of ")


def _term(symbols: tuple[str, ...], factor: int) -> str:
    numbers = [str(factor)] if abs(factor) != 1 or not symbols else []
    text = " * ".join([*numbers, *sorted(symbols, key=lambda symbol: symbol == EPOCH)])
    return f"-{text}" if factor == -1 and symbols else text


def polynomial(value: SSAValue, rank: SSAValue | None = None) -> Polynomial | None:
    """An integer as a polynomial; None if it depends on memory, on a loop, or on a quotient, but half of the epoch.

    `rank` stands for this rank: what that one has is taken for what this one has.
    """
    op = value.owner
    match op:
        case arith.ConstantOp():
            return Polynomial.constant(op.value.value.data) if isinstance(op.value, IntegerAttr) else None
        case DimOp():
            return Polynomial.of(op.dim.data)
        case EpochOp():
            return Polynomial.of(EPOCH)
        case CtasOp():
            return Polynomial.of(f"ctas of {op.role.data}")
        case BlockCountOp():
            return _block_count(op, rank)
        case arith.DivSIOp() if isinstance(op.lhs.owner, EpochOp) and constant_of(op.rhs) == 2:
            return Polynomial.of(HALF_EPOCH)
        case arith.DivSIOp() if constant_of(op.rhs) == 2 and _is_next_epoch(op.lhs):
            return Polynomial.of(HALF_OF_LAUNCHES)
        case arith.AddiOp() | arith.SubiOp() | arith.MuliOp():
            return _combined(op, rank)
        case arith.SelectOp():
            return _unless_none(op, rank)
        case _:
            return None


def _is_next_epoch(value: SSAValue) -> bool:
    made = value.owner
    return isinstance(made, arith.AddiOp) and isinstance(made.lhs.owner, EpochOp) and constant_of(made.rhs) == 1


def _unless_none(op: arith.SelectOp, rank: SSAValue | None) -> Polynomial | None:
    """Of a number that is chosen instead of zero, the number: who waits for nothing does not wait."""
    left, right = polynomial(op.lhs, rank), polynomial(op.rhs, rank)
    if left is not None and left.is_zero:
        return right
    return left if right is not None and right.is_zero else None


def blocks_of_this_rank(block: BlockType) -> Polynomial:
    """How many blocks a rank's shard of a dimension has."""
    return Polynomial.of(f"blocks({block.of} by {block.extent}){OF_THIS_RANK}")


def _block_count(op: BlockCountOp, rank: SSAValue | None) -> Polynomial | None:
    block = op.block
    if op.start is not None or op.stop is not None:
        return None
    if op.shard is not None:
        here = isinstance(op.shard.owner, RankOp) if rank is None else same_value(op.shard, rank)
        return blocks_of_this_rank(block) if here else None
    if isinstance(block.of, int):
        return Polynomial.constant(blocks.count(0, block.of, block.extent))
    return Polynomial.of(f"blocks({block.of} by {block.extent}{' in shards' if op.sharded is not None else ''})")


def _combined(op: Operation, rank: SSAValue | None) -> Polynomial | None:
    left, right = (polynomial(operand, rank) for operand in op.operands)
    if left is None or right is None:
        return None
    if isinstance(op, arith.AddiOp):
        return left + right
    return left - right if isinstance(op, arith.SubiOp) else left * right
