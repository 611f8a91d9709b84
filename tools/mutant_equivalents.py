"""Mutants that change nothing, each with why: a survivor that is none of these is something that the check misses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_ENTERED = """\
`entered`, which pkc adds, is awaited from every CTA of every rank in front of `ready`, and releases at the scope of the
system: causality order is transitive (PTX, memory consistency model), so that `ready` orders nothing more"""
_LEFT = """\
`left`, which pkc adds, is signalled by every CTA behind its stores, releases at the scope of the system, and is awaited
from all before the kernel ends: until then nobody reads what `done` announces"""
_BARRIERS = """\
between `entered` and `left`, which pkc adds, barriers follow each other without anything between them"""
_NOTHING = """\
what the barrier is in front of reads only X, which is there once all have entered"""
_READY = """\
each task waits for its tiles, with fences of its own, before it loads any"""
_COPIED = """\
copy engines end when those of all ranks have copied what came of the last loads"""
_ONE_CTA = """\
one CTA waits at the barrier, and nobody signals again before its wait has ended"""
_ITSELF = """\
the only CTA of the role waits for its own signal, which stands in front of the wait"""


@dataclass(frozen=True)
class Same:
    """Breaks of operations of one line of an example, or of a protocol of tests/written.py, that change nothing."""

    subjects: tuple[str, ...]
    lines: tuple[int, ...]
    why: str
    ops: tuple[str, ...] = ()
    """The operations that are broken; any of the line without one."""
    most: int = 99
    """How many such breaks there are in a subject and line: another one is something else."""

    def fits(self, subject: str, op: str, line: int) -> bool:
        return subject in self.subjects and line in self.lines and (not self.ops or op in self.ops)


BY_PEOPLE = (
    Same(("all_reduce_explicit default",), (4,), _ENTERED),
    Same(("all_reduce_explicit default",), (9, 10), _LEFT),
    Same(("barriers one after the other",), (3, 4, 9, 10), _BARRIERS),
    Same(("a barrier of each task",), (4,), _NOTHING),
    Same(("tiles in pieces",), (3,), _NOTHING),
    Same(("tiles in pieces",), (9, 10), _LEFT),
    Same(
        ("sums in any order",),
        (5,),
        "each rank clears the memory of the next one, not its own, before the same barrier",
    ),
    Same(
        ("a store that no load orders",),
        (3,),
        "`go` says that a rank has begun, as `entered` does, which pkc adds in front of it",
    ),
    Same(
        ("moe_mlp default",),
        (12,),
        "`left` says that X has been read, as the end of the phase behind it does: readers wait for all rows before",
    ),
    Same(
        ("maxima and minima",),
        (4,),
        "the largest and the least of all ranks' numbers do not depend on which rank has which",
    ),
)
"""Of the mistakes of tools/mutant_mistakes.py."""

_GATHER, _REDUCE = (
    tuple(f"{name} {how}" for how in ("default", "one_comm_sm")) for name in ("ag_gemm_explicit", "all_reduce_explicit")
)
_ORDERING = ("pk.fence", "pk.drain", "pk.signal", "pk.signal_all")
OF_PASSES = (
    Same(_GATHER, (4,), _ENTERED, _ORDERING, most=3),
    Same(_GATHER, (10,), _LEFT, _ORDERING, most=3),
    Same(_REDUCE, (3,), _ENTERED, _ORDERING, most=6),
    Same(_REDUCE, (4,), _ENTERED, _ORDERING, most=3),
    Same(("all_reduce_explicit one_comm_sm",), (9,), _ITSELF, ("pk.signal",), most=1),
    Same(("all_reduce_explicit one_comm_sm",), (9,), _ITSELF, ("pk.wait",), most=1),
    Same(_REDUCE, (9,), _LEFT, _ORDERING, most=5),
    Same(_REDUCE, (10,), _LEFT, _ORDERING, most=2),
    Same(("ag_gemm_explicit one_comm_sm",), (4,), _ONE_CTA, ("pk.wait",), most=2),
    Same(("all_reduce_explicit one_comm_sm",), (3,), _ONE_CTA, ("pk.wait",), most=2),
    Same(
        tuple(f"ag_gemm_fp8_blocks {how}" for how in ("default", "one_comm_sm", "straddle")),
        (6,),
        "what is loaded behind the wait for scales comes behind another one, for the first piece of A",
        ("pk.fence",),
        most=3,
    ),
    Same(("ag_rmsnorm_gemm none",), (7,), _READY, ("pk.wait",), most=1),
    Same(("ag_rmsnorm_gemm none", "ag_rmsnorm_gemm push"), (7,), _READY, ("pk.fence",), most=2),
    Same(("all_reduce_rmsnorm copy_engine",), (4,), _COPIED, ("pk.drain", "pk.fence", "pk.signal_all"), most=4),
    Same(("all_reduce_rmsnorm copy_engine",), (2,), _COPIED, ("pk.kernel",), most=1),
    Same(
        ("moe_mlp default", "moe_mlp none", "moe_mlp one_comm_sm"),
        (12,),
        "`left` says that X has been read, as the end of the phase behind it does: readers wait for all rows before",
        ("pk.drain", "pk.signal_all"),
        most=3,
    ),
    Same(
        ("window_attention default",),
        (7,),
        "what is visited ends at the last block in which its mask leaves anything, which is that same block",
        ("pk.block_count",),
        most=2,
    ),
)
"""Of the breaks of tools/mutant_operators.py."""


class Known:
    """Tells the survivors that change nothing from others, as they come, in any order."""

    def __init__(self, table: Sequence[Same]) -> None:
        self._table = table
        self._met = Counter[tuple[str, int, Same]]()

    def why(self, subject: str, where: str) -> str:
        """Why a break of `op at file:line` changes nothing; empty if that is not known."""
        op, line = where.split(" ", 1)[0], int(where.rpartition(":")[2])
        for same in self._table:
            if same.fits(subject, op, line) and self._met[subject, line, same] < same.most:
                self._met[subject, line, same] += 1
                return same.why
        return ""
