"""Which rank has what an access reaches, and how large the boxes of copies are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from xdsl.ir import SSAValue

from pkc.dialect import blocks
from pkc.dialect.access import array_type
from pkc.dialect.copies import CopyOp
from pkc.dialect.types import Layout, PGLType, dtype_bytes


class Owners:
    """The arrays of a kernel at given sizes (`ranks` among them)."""

    def __init__(self, sizes: Mapping[str, int], ranks: int) -> None:
        self._sizes, self._ranks = sizes, ranks

    def of(self, array: SSAValue, indices: Sequence[Any], rank: int, at: int | None) -> int:
        """The rank in whose memory a tile lies that `rank` addresses."""
        kind = array.type
        if at is not None:
            return at
        if not isinstance(kind, PGLType) or kind.layout is not Layout.Shard or kind.shard_dim is None:
            return rank
        return self._owner(kind, indices[kind.shard_dim])

    def of_box(self, array: SSAValue, dims: Sequence[int], indices: Sequence[Any], rank: int) -> int:
        """The same of a box: `indices` are those of some dimensions."""
        kind = array.type
        if not isinstance(kind, PGLType) or kind.layout is not Layout.Shard:
            return rank
        picked = dict(zip(dims, indices, strict=True))
        return self._owner(kind, picked[kind.shard_dim]) if kind.shard_dim in picked else rank

    def _owner(self, kind: PGLType, index: Any) -> int:
        assert kind.shard_dim is not None
        position = index if isinstance(index, int) else index.start
        return blocks.owner(self._extent(kind.dimensions[kind.shard_dim]), self._ranks, position)

    def box(self, op: CopyOp, indices: Sequence[Any]) -> int:
        """Bytes of a copy."""
        kind = array_type(op.source)
        picked = dict(zip(op.source_dims.get_values(), indices, strict=True))
        lengths = (self._length(dim, picked.get(place)) for place, dim in enumerate(kind.dimensions))
        return prod(lengths) * dtype_bytes(kind.element_type)

    def _length(self, dim: str | int, index: Any) -> int:
        if index is None:
            return self._extent(dim)
        return 1 if isinstance(index, int) else index.length

    def _extent(self, dim: str | int) -> int:
        return dim if isinstance(dim, int) else self._sizes[dim]
