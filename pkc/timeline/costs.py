"""What single operations of the roles level take, in nanoseconds, at the rates of a target (`pkc/targets/arch.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects import scf
from xdsl.ir import Operation

from pkc.cost.lists import Extent, bytes_listed, entries_seen
from pkc.cost.operations import elements_of, rate_of
from pkc.dialect.by_table import GatherOp
from pkc.dialect.inverse import InvertOp, SumRowsOp
from pkc.dialect.tile import AnyMmaOp, tile_type
from pkc.dialect.transfers import TRANSFER, mma_operand_stage, moves_async, moves_by_tma
from pkc.dialect.types import TileType, dtype_bytes
from pkc.passes.analysis.dependence import ancestors
from pkc.targets.layout import CHUNK
from pkc.targets.target import Target


@dataclass(frozen=True)
class Costs:
    """Costs on one target. What a role of several warpgroups does is divided among `groups` of them."""

    target: Target

    def mma(self, op: AnyMmaOp, groups: int) -> float:
        """Of the tensor cores of an SM: the MMAs, or the bytes of shared memory that they read and TMA writes."""
        rates, unit = self.target.rates, self.target.mma.rows
        left, right = tile_type(op.a), tile_type(op.b)
        (rows, inner), columns, size = left.shape, right.shape[1], dtype_bytes(left.element_type)
        number = -(-rows // unit)
        in_registers = mma_operand_stage(op.a) is None
        cycles = 2 * number * unit * columns * inner * size / 2 / rates.mma_flops
        read = number * ((0 if in_registers else unit) + columns) * inner * size
        written = sum(self.target.shared_layout(tile).bytes for tile in (left, right)[in_registers:])
        written = 0 if _has_others_beside(op) else written
        # Results go to threads, and what these compute of them goes back.
        dependent = rates.dependent if in_registers else 0.0
        return (max(cycles, (read + written) / rates.shared_bytes) / rates.clock + dependent) / groups

    def computing(self, op: Operation, groups: int, extent: Extent) -> float:
        """Of the threads of an SM; of lists and what they name by how long dimensions are."""
        rates = self.target.rates
        if isinstance(op, SumRowsOp):
            share = rates.memory_bytes / self.target.arch.sms  # all SMs add up at the same time
            return bytes_listed(op, extent) / min(share, rates.load_bytes)
        if isinstance(op, InvertOp):
            seen = entries_seen(op, extent, self.target.arch.warp)
            return self.target.per_element(op.name).lanes * seen / rates.lanes / rates.clock
        looped = any(isinstance(outer, scf.ForOp) for outer in ancestors(op))
        rate = rate_of(op, self.target, looped=looped)
        each = rate.lanes / rates.lanes + rate.special / rates.special
        return each * elements_of(op) / rates.clock / groups

    def rows(self, tile: TileType, share: float) -> float:
        """Of TMA for the rows of a box, of which a share lies inside of the array."""
        layout, rates = self.target.shared_layout(tile), self.target.rates
        return layout.rows * layout.panels * (share * rates.load_row + (1 - share) * rates.outside_row)

    def gathering(self, op: GatherOp) -> float:
        """Of warps that start copies of the rows of a table."""
        tile = tile_type(op.result)
        each = CHUNK if op.ends_in_block else dtype_bytes(tile.element_type)
        chunks = prod(tile.shape) * dtype_bytes(tile.element_type) / each
        return chunks / (self.target.tuning.carriers * self.target.arch.warp) * self.target.rates.copied_chunks


def _has_others_beside(op: AnyMmaOp) -> bool:
    """Whether an iteration has several MMAs: stages are filled meanwhile, as was measured (`pkc/cost/estimate.py`)."""
    block = op.parent
    return block is not None and sum(isinstance(other, AnyMmaOp) for other in block.ops) > 1


def is_asynchronous(op: Operation) -> bool:
    """Whether a role goes on while its access is on its way."""
    return TRANSFER not in op.attributes or moves_by_tma(op) or moves_async(op)
