"""What is read back from GPUs: one array of all ranks' memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from pkc.codegen.artifact import ArrayParameter
from pkc.driver import hardware
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.reference import compare, reference

DTYPES_OF = {"i32": np.int32, "i8": np.int8}


@pytest.mark.parametrize(("second", "same"), [(2.0, True), (2.5, False)])
def test_copies_that_differ_are_no_result_unless_one_is_asked_for(
    second: float, same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = [np.array([1.0, 2.0], np.float32), np.array([1.0, second], np.float32)]
    monkeypatch.setattr(hardware, "download", lambda mesh, array, rank: memory[rank])
    call: Any = object.__new__(hardware.Call)
    call._mesh = cast(Any, SimpleNamespace(ranks=2))
    call._arrays = {"Y": (ArrayParameter("Y", "f32", ("M",), "replicate", None, scratch=False), None)}
    ((found,), copies) = (call.all_outputs(False), call.all_outputs(True))
    assert np.isnan(found["Y"]).all() != same
    assert [of["Y"].tolist() for of in copies] == [[1.0, 2.0], [1.0, second]]


def test_short_kernels_are_launched_more_often_and_long_ones_less() -> None:
    """Together at least `LEAST`, at most `ENOUGH`, and 20 where that is between both."""
    for one, wanted in ((2e3, 200), (3e4, 20), (1e6, 5), (1e8, 1)):
        assert hardware.enough_launches(one, 20) == wanted


@pytest.mark.parametrize("kind", ["i32", "i8"])
def test_what_a_kernel_leaves_alone_is_what_its_reference_has_there(kind: str) -> None:
    """An array that is written in part, as by a table of places, begins as what the simulator has for the rest."""
    text = f"kernel k(X: {kind}[M], Y: {kind}[M]):\n    for m in tasks(blocks(M, 8)):\n"
    text += "        if start(m) < 8:\n            Y[m] = X[m]\n"
    module = compile_program(parse_text(Source("k.pk", text))).module
    x = np.arange(20, dtype=DTYPES_OF[kind])
    wanted = reference(module, ranks=1, dims={"M": 20}, inputs={"X": x[None]})
    parameter = ArrayParameter("Y", kind, ("M",), "private", None, scratch=False)
    found = np.full((1, 20), hardware._initial(parameter, cast(Any, None), 0, None), x.dtype)
    found[0, :8] = x[:8]
    (compared,) = compare({"Y": found}, wanted)
    assert compared.ok
    found[0, 9] += 1
    (compared,) = compare({"Y": found}, wanted)
    assert compared.problem.endswith("but the kernel writes nothing there")
