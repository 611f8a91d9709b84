"""The passes and their order: this file is the whole pipeline."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.passes import ModulePass

from pkc.passes.canonicalize import Canonicalize
from pkc.passes.check_program import CheckProgram
from pkc.passes.cse import Cse
from pkc.passes.dce import Dce

TILE_PIPELINE: tuple[ModulePass, ...] = (
    CheckProgram(),  # first: findings speak of the program as it was written
    Cse(),  # equal blocks become one value, by which the patterns after it know them
    Canonicalize(),  # products add into their accumulator, clips of zero padding go
    Cse(),  # constants that folding made twice
    Dce(),  # what only merged operations used
)
"""From the IR that the frontend builds to the tile IR that is simulated and lowered."""


def _thunk(kind: type[ModulePass]) -> Callable[[], type[ModulePass]]:
    return lambda: kind


PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    kind.name: _thunk(kind) for kind in (CheckProgram, Canonicalize, Cse, Dce)
}
"""Every pass by the name it has in `pkc opt -p`."""
