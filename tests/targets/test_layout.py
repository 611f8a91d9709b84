"""Where the panels of a tile lie that TMA writes one by one."""

from __future__ import annotations

import pytest

from pkc.dialect.machine import MAX_BOX
from pkc.dialect.types import TileType, bf16, f32
from pkc.targets.sm_90a.layout import shared_layout


@pytest.mark.parametrize("kind", [bf16, f32])
@pytest.mark.parametrize("columns", [256, 448, 896, 4480, 4488, 8192, 37984])
@pytest.mark.parametrize("rows", [0, 1, 3, 4, 64])
def test_every_panel_begins_where_a_box_can(rows: int, columns: int, kind: object) -> None:
    layout = shared_layout(TileType([rows, columns] if rows else [columns], kind))
    assert layout.columns * layout.panels == columns
    assert layout.columns <= MAX_BOX
    assert layout.panels == 1 or layout.panel_bytes % 128 == 0
    assert layout.panel_bytes >= layout.rows * layout.width
