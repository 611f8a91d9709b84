"""What a CTA of the GPU has of a tile, where the CTAs of the roles level are clusters."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation

from pkc.dialect.attributes import number_on, planned
from pkc.dialect.program import CLUSTER, SPREAD, kernel_of
from pkc.dialect.roles import ChannelType
from pkc.dialect.types import TileType


def cluster_of(op: Operation) -> int:
    """How many CTAs each cluster of a kernel has, or of the one that an operation is in; 1 without clusters."""
    return number_on(kernel_of(op) or op, CLUSTER) or 1


def in_cta(op: Operation) -> Callable[[TileType], TileType]:
    """What a CTA has of a tile of a kernel, or of the one that an operation is in: its part of long rows, and all of
    other tiles."""
    kernel, count = kernel_of(op), cluster_of(op)
    if kernel is None or count == 1:
        return lambda kind: kind
    length = planned(kernel, SPREAD)

    def part(kind: TileType) -> TileType:
        shape = [extent // count if extent == length else extent for extent in kind.shape]
        return TileType(shape, kind.element_type)

    return part


def channel_in_cta(op: Operation, kind: ChannelType) -> ChannelType:
    """The tiles of a stage that a CTA has of a channel of a kernel."""
    return ChannelType([in_cta(op)(tile) for tile in kind.tiles])
