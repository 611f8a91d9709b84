"""Every operation of the language on a GPU, on all kinds of numbers; and that the check finds wrong results."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from xdsl.utils.test_value import create_ssa_value

from pkc.dialect.elementwise import AddOp, ExpOp
from pkc.dialect.types import TileType, f32
from pkc.frontend.elaborate import build_module
from pkc.semantics import tile_ops
from tests.functions import inputs_of
from tests.gpu import functions

DIMS = {"M": 256, "N": 256}


class _Host:
    """In place of a kernel on a GPU: numpy, off by a factor."""

    def __init__(self, kind: Any, factor: float) -> None:
        self._kind, self._factor = kind, factor

    def __call__(self, *_: Any) -> _Host:
        return self

    def fill(self, inputs: dict[str, Any]) -> None:
        self._inputs = list(inputs.values())

    def launch(self) -> None:
        pass

    def free(self) -> None:
        pass

    def outputs(self) -> dict[str, Any]:
        made = self._kind(*[create_ssa_value(TileType((1,), f32))] * len(self._inputs))
        with np.errstate(all="ignore"):
            found = tile_ops.value(made)(*self._inputs)
            return {"Y": (found * np.float32(self._factor)).astype(found.dtype)}


@pytest.mark.parametrize("kind", [ExpOp, AddOp])
@pytest.mark.parametrize(("factor", "right"), [(1.0, True), (1.0 + 2.0**-20, False)])
def test_what_is_wrong_is_found(
    kind: Any, factor: float, right: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(functions, "DIMS", DIMS)
    monkeypatch.setattr(functions, "artifact_for", lambda program, **_: build_module(program))
    monkeypatch.setattr(functions, "Call", _Host(kind, factor))
    mesh: Any = SimpleNamespace(synchronize=lambda patience: None)
    assert functions.check(mesh, kind, f32, iter([inputs_of(kind, f32, 0, 256 * 256)])) is right
    assert ("WRONG" not in capsys.readouterr().out) is right


@pytest.mark.gpu(limit=300)
def test_functions() -> None:
    assert functions.main([]) == 0
