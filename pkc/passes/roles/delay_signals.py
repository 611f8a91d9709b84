"""The pass `pk-delay-signals`: a loop that stores a tile to many and signals each becomes two loops."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from pkc.dialect.access import StoreAddOp, StoreOp
from pkc.dialect.attributes import Role
from pkc.dialect.counters import SignalAllOp, SignalOp
from pkc.dialect.program import WRITTEN, KernelOp
from pkc.dialect.tile import CastOp
from pkc.dialect.types import TileType
from pkc.passes.build import append_copy, defined_in
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed


class DelaySignals(KernelPass):
    """Store a tile that a communicator has computed to all ranks before the first of them is told.

    The threads of a communicator go over tiles in chunks, each through all operations, so that no tile is in registers
    as a whole. A signal between two stores would need the whole tile stored. Behind the loop it says no less: a signal
    may come later than where it is written, as long as nothing in between waits.

    Before:

        %t = ... : !pk.tile<128x256xbf16>
        scf.for %i = ... {
          pk.store %t, %Y at %r[%m, %n : ...] : ...
          pk.signal %done at %r[%0] by %1 : !pk.signal<[1]>
        }

    After:

        %t = ... : !pk.tile<128x256xbf16>
        scf.for %i = ... {
          pk.store %t, %Y at %r[%m, %n : ...] : ...
        }
        scf.for %i = ... {
          pk.signal %done at %r[%0] by %1 : !pk.signal<[1]>
        }
    """

    name = "pk-delay-signals"

    def run(self, kernel: KernelOp) -> None:
        roles = kernel.roles if WRITTEN in kernel.attributes else []
        for role in roles:
            loops = role.walk() if role.role.data is Role.Communicator else ()
            for loop in [op for op in loops if isinstance(op, scf.ForOp) and _stores_from_outside(op)]:
                if _may_divide(loop):
                    _divide(loop)
                elif any(isinstance(op, _SIGNALS) for op in loop.walk()):
                    reason = "a signal in this loop stays between stores of a tile, because the loop does more"
                    missed(DelaySignals.name, loop, reason)


_SIGNALS = (SignalOp, SignalAllOp)


def _stores_from_outside(loop: scf.ForOp) -> bool:
    """Whether a loop stores a tile that is computed in front of it."""
    tiles = [value for op in loop.body.block.ops for value in op.operands if isinstance(value.type, TileType)]
    stores = any(isinstance(op, StoreOp | StoreAddOp) for op in loop.body.block.ops)
    return stores and any(not defined_in(tile, loop) and _is_computed(tile.owner) for tile in tiles)


def _is_computed(maker: object) -> bool:
    return isinstance(maker, Block) or (isinstance(maker, Operation) and bool(maker.operands))


def _may_divide(loop: scf.ForOp) -> bool:
    ops = list(loop.body.block.ops)
    simple = (StoreOp, StoreAddOp, *_SIGNALS, scf.YieldOp, CastOp)
    return (
        not loop.iter_args
        and any(isinstance(op, _SIGNALS) for op in ops)
        and all(isinstance(op, simple) or (is_side_effect_free(op) and not op.regions) for op in ops)
    )


def _divide(loop: scf.ForOp) -> None:
    body = Block(arg_types=[IndexType()])
    known: dict[SSAValue, SSAValue] = {loop.body.block.args[0]: body.args[0]}
    for op in list(loop.body.block.ops):
        if isinstance(op, StoreOp | StoreAddOp) or any(isinstance(result.type, TileType) for result in op.results):
            continue
        copy = append_copy(body, op, known)
        known.update(zip(op.results, copy.results, strict=True))
        if isinstance(op, _SIGNALS):
            op.detach()
            op.erase()
    signals = scf.ForOp(loop.lb, loop.ub, loop.step, [], body)
    signals.location = loop.location
    assert loop.parent is not None
    loop.parent.insert_op_after(signals, loop)
