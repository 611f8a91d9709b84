"""Where the panels of a tile lie that TMA writes one by one."""

from __future__ import annotations

import pytest
from xdsl.ir import Attribute

from pkc.dialect.machine import MAX_BOX
from pkc.dialect.types import TileType, bf16, dtype_bytes, e4m3, f32
from pkc.targets.sm_90a.layout import is_one_piece, shared_layout


def test_a_row_without_proper_panels_lies_in_one_piece() -> None:
    """37984 is 32 times a prime number, and panels of 64 bytes would take 128 each; rows of several have them."""
    assert shared_layout(TileType([37984], bf16)).bytes == 2 * 37984
    assert not is_one_piece(TileType([4480], bf16)) and not is_one_piece(TileType([2, 37984], bf16))
    assert not is_one_piece(TileType([37983], bf16))  # no multiple of 16 bytes


@pytest.mark.parametrize("kind", [bf16, f32])
@pytest.mark.parametrize("columns", [256, 296, 448, 896, 2984, 4328, 4480, 4488, 8192, 37984])
@pytest.mark.parametrize("rows", [0, 1, 3, 4, 64])
def test_every_panel_begins_where_a_box_can(rows: int, columns: int, kind: object) -> None:
    tile = TileType([rows, columns] if rows else [columns], kind)
    layout = shared_layout(tile)
    assert layout.columns * (layout.panels - 1) < columns <= layout.columns * layout.panels
    assert layout.columns <= MAX_BOX or is_one_piece(tile)
    assert layout.panels == 1 or layout.panel_bytes % 128 == 0
    assert layout.panel_bytes >= layout.rows * layout.width


@pytest.mark.parametrize(("kind", "step"), [(e4m3, 16), (bf16, 8), (f32, 4)])
@pytest.mark.parametrize("rows", [2, 8])
def test_no_box_has_less_of_a_row_than_two_chunks(rows: int, kind: Attribute, step: int) -> None:
    """Where the panels that divide a row have one chunk, the last panel is padded: by a 32nd, or to 128 bytes."""
    for columns in range(272, 4400, step):
        layout, size = shared_layout(TileType([rows, columns], kind)), dtype_bytes(kind)
        padding = layout.columns * layout.panels - columns
        assert layout.width >= 32 and padding < layout.columns <= MAX_BOX
        if padding:
            assert layout.width % 128 == 0 and (padding * 32 <= columns or layout.width == 128)
            assert not any(columns % n == 0 and n * size % 16 == 0 for n in range(step + 1, MAX_BOX + 1))
