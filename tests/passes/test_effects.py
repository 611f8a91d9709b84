"""What pkc finds of memory effects is what xDSL finds, of every operation of programs at each level."""

from __future__ import annotations

import pytest
from xdsl.ir import Operation
from xdsl.traits import get_effects
from xdsl.transforms.dead_code_elimination import would_be_trivially_dead

from pkc.passes.analysis.effects import Kinds, effect_kinds, is_needless
from tests.examples.test_examples import compiled


@pytest.mark.parametrize(("name", "level"), [("moe_mlp", "tile"), ("gemm_rs", "roles"), ("gemm", "machine")])
def test_effects_are_those_of_xdsl(name: str, level: str) -> None:
    known: dict[Operation, Kinds | None] = {}
    seen: set[Kinds | None] = set()
    for op in compiled(name, level).module.walk():
        effects = get_effects(op)
        kinds = None if effects is None else frozenset(effect.kind for effect in effects)
        assert effect_kinds(op) == effect_kinds(op, known) == kinds
        assert is_needless(op) == is_needless(op, known) == would_be_trivially_dead(op)
        seen.add(kinds)
    assert len(seen) > 1
