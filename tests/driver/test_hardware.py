"""What is read back from GPUs: one array of all ranks' memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from pkc.codegen.artifact import ArrayParameter
from pkc.driver import hardware


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
