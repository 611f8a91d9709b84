"""What a kernel tells somebody who tries it in a notebook."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import no_type_check

import pytest

import pkc
from pkc.language import bf16, blocks, dims, f32, tasks
from pkc.runtime import driver

(M,) = dims("M")
GEMM = pkc.load(Path(__file__).parents[1] / "examples" / "gemm_rs.pk")


def made(**options: object) -> pkc.Kernel:
    @pkc.kernel(**options)  # pyright: ignore[reportArgumentType]
    @no_type_check
    def copy(A: f32[M], B: bf16[M]):
        for m in tasks(blocks(M, 64)):
            B[m] = A[m]

    return copy


def test_names_that_are_nearly_right() -> None:
    with pytest.raises(pkc.PkcError, match="did you mean `ranks`"):
        GEMM.simulate(rank=2)
    with pytest.raises(pkc.PkcError, match="did you mean `orders`"):
        GEMM.check(order=2)
    with pytest.raises(pkc.PkcError, match="did you mean `ranks`"):
        GEMM.timeline(rank=2, M=64, N=64, K=64)


def test_a_schedule_is_given_by_its_keys() -> None:
    with pytest.raises(pkc.PkcError, match="PK501"):
        made(schedule={"tile_M": 64})


def test_explanations_at_given_sizes() -> None:
    chosen, *rest = made().explain(ranks=3, M=512).splitlines()
    assert ": schedule: " in chosen
    assert rest and made().explain().splitlines() != [chosen, *rest]


def test_without_what_gpus_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)
    with pytest.raises(pkc.PkcError, match=r"`pip install 'pkc\[gpu\]'` installs"):
        driver.load.__wrapped__()


def test_cells_have_the_names_that_are_printed_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    class Shell:
        class compile:
            @staticmethod
            def format_code_name(file: str) -> tuple[str, str] | None:
                return ("Cell", "In[3]") if file == __file__ else None

    notebook = ModuleType("IPython")
    notebook.__path__ = [str(Path(pytest.__file__).parent)]  # frames of it are left out, as those of pkc are
    notebook.get_ipython = Shell  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    with pytest.raises(pkc.PkcError) as error:
        made(overlp="none")
    assert re.search(r"\n *--> Cell In\[3\]:\d+:\d+\n", str(error.value))
    head, *frames, last = error.value.traceback()
    assert head == "Traceback (most recent call last):" and last.startswith("error[PK501]")
    assert frames and all('File "Cell In[3]", line' in frame for frame in frames)
