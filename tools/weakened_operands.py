"""Mistakes in exchanged operands, in what is written the other way round, and in tasks that are joined."""

from __future__ import annotations

from tools.mistake import Mistake

_SWAP, _STAGING, _SWAPPED = (
    "passes/roles/swap_operands.py",
    "passes/machine/lowering/staging.py",
    "codegen/test_swapped.py",
)

OPERANDS = (
    Mistake(
        "what a stage gives the other way round is turned once more",
        _STAGING,
        "return isinstance(value.owner, TransposeOp) and not isinstance(role.tiles[value], Staged)",
        "return isinstance(value.owner, TransposeOp)",
        "codegen/test_tiles.py",
        "transposed_f32",
    ),
    Mistake(
        "columns of a matrix are written to the chunks of others",
        _STAGING,
        "inside = emit.plus(of_matrix, emit.times(emit.right(lane, 4), 8))",
        "inside = emit.plus(of_matrix, emit.times(emit.bit_and(emit.right(lane, 3), 1), 8))",
        _SWAPPED,
        "exchanged",
    ),
    Mistake(
        "an axis of what is spread along a transpose stays",
        "passes/turned.py",
        "[1 - axis for axis in op.positions]",
        "[axis for axis in op.positions]",
        _SWAPPED,
        "exchanged",
    ),
    Mistake(
        "a result that meets its transpose is exchanged",
        _SWAP,
        "return isinstance(value.owner, TransposeOp) and value.owner.tile in self._values",
        "return False",
        _SWAPPED,
        "meet_their_transpose",
    ),
    Mistake(
        "tasks in tasks are joined though their number follows from these",
        "passes/tile/join_tasks.py",
        "            if _depends(op, inner):\n                continue\n",
        "",
        "passes/join_tasks.mlir",
    ),
    Mistake(
        "of phases of which two share a channel each keeps a share of memory",
        "passes/roles/reuse_memory.py",
        " and not short:\n            return",
        ":\n            return",
        "passes/test_reuse_memory.py",
        "other_tiles",
    ),
    Mistake(
        "a box is taken for as long as its block, whatever the tables have",
        "passes/analysis/boxed_rows.py",
        "if other.steps or not other.multiple or not isinstance(number, FullOp) or number.constant <= 0:",
        "if other.steps or not isinstance(number, FullOp) or number.constant <= 0:",
        "codegen/test_boxes.py",
        "each_row",
    ),
    Mistake(
        "what a box brings behind a list is summed",
        "passes/roles/boxed.py",
        "if block.stop is not None and multiple_of(block.stop) % found.rows != 0:",
        "if False:",
        "codegen/test_boxes.py",
        "no_box",
    ),
    Mistake(
        "the first row of a box that is none is taken for the row before the array",
        "passes/machine/lowering/boxes.py",
        "emit.const(-rows), row)",
        "emit.const(-1), row)",
        "codegen/test_boxes.py",
        "each_row",
    ),
    Mistake(
        "blocks of all shards are taken for equally far apart",
        "dialect/blocks.py",
        "return whole * count(0, length, size) + count(0, rest, size)\n\n\ndef sharded_block",
        "return count(0, limit, size)\n\n\ndef sharded_block",
        "passes/test_masks.py",
        "one_list",
    ),
    Mistake(
        "tiles of a group are fetched as if groups went on into the next shard",
        "passes/roles/visits.py",
        "if index is None and fetch.group and not fetch.again and grouped_place(fetch) is not None:",
        "if False:",
        "passes/test_fetch.py",
        "window",
    ),
    Mistake(
        "of a group the tiles in front of what tasks need are left out",
        "passes/roles/visits.py",
        "constant(max(fetch.group, 1))",
        "constant(1)",
        "passes/test_fetch.py",
        "window",
    ),
    Mistake(
        "rows that are none, and others once something is added, are taken for those of a box",
        "passes/analysis/boxed_rows.py",
        "if one is None or other is None or one.optional or other.optional:",
        "if one is None or other is None:",
        "codegen/test_boxes.py",
        "what_is_a_box",
    ),
    Mistake(
        "a list ends where memory says, even behind the end of its dimension",
        "passes/roles/boxed.py",
        "return not isinstance(length, int) or length % found.rows != 0",
        "return block.stop is None and (not isinstance(length, int) or length % found.rows != 0)",
        "codegen/test_boxes.py",
        "no_box",
    ),
)
"""For `tools.weakened`."""
