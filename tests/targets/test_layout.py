"""Where the panels of a tile lie that TMA writes one by one."""

from __future__ import annotations

import pytest

from pkc.dialect.machine import MAX_BOX
from pkc.dialect.types import TileType, bf16, f32
from pkc.targets.sm_90a.layout import is_one_piece, shared_layout


def test_a_row_without_proper_panels_lies_in_one_piece() -> None:
    """37984 is 32 times a prime number, and panels of 64 bytes would take 128 each; rows of several have them."""
    assert shared_layout(TileType([37984], bf16)).bytes == 2 * 37984
    assert not is_one_piece(TileType([4480], bf16)) and not is_one_piece(TileType([2, 37984], bf16))
    assert not is_one_piece(TileType([37983], bf16))  # no multiple of 16 bytes


@pytest.mark.parametrize("kind", [bf16, f32])
@pytest.mark.parametrize("columns", [256, 448, 896, 4480, 4488, 8192, 37984])
@pytest.mark.parametrize("rows", [0, 1, 3, 4, 64])
def test_every_panel_begins_where_a_box_can(rows: int, columns: int, kind: object) -> None:
    tile = TileType([rows, columns] if rows else [columns], kind)
    layout = shared_layout(tile)
    assert layout.columns * layout.panels == columns
    assert layout.columns <= MAX_BOX or is_one_piece(tile)
    assert layout.panels == 1 or layout.panel_bytes % 128 == 0
    assert layout.panel_bytes >= layout.rows * layout.width
