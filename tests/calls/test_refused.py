"""Calls from Python that are refused: exact texts, at the line of the call."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import pkc
from pkc.language import *
from pkc.runtime import torch as adapter
from tests.calls import helpers
from tests.calls.helpers import added, gathered, here, numbered, scaled, summed, tensor, told
from tests.runtime.fake import FIRST_POINTER, Api, Device, Tensor

ROOT = Path(__file__).parents[2]


def test_too_many_arguments() -> None:
    x = tensor(64, 64)
    expected = f"""\
error[PK860]: `scaled` takes 4 arguments; 5 are given by position
{here("scaled(x, x, 1, 64, 5)")}
  = help: it is called as `scaled(X, Y, factor, SIZE=64)`
"""
    assert told(lambda: scaled(x, x, 1, 64, 5)) == expected


def test_an_unknown_name() -> None:
    x = tensor(64, 64)
    expected = f"""\
error[PK861]: `scaled` has no parameter `Size`
{here("scaled(x, x, 1, Size=3)")}
  = help: did you mean `SIZE`?
"""
    assert told(lambda: scaled(x, x, 1, Size=3)) == expected


def test_by_position_and_by_name_at_once() -> None:
    x = tensor(64, 64)
    expected = f"""\
error[PK862]: `scaled` is given `X` twice: by position and by name
{here("scaled(x, x, 1, X=x)")}
  = help: it is called as `scaled(X, Y, factor, SIZE=64)`
"""
    assert told(lambda: scaled(x, x, 1, X=x)) == expected


def test_missing_arguments() -> None:
    x = tensor(64, 64)
    expected = f"""\
error[PK863]: `scaled` is called without `X`, `factor`
{here("scaled(Y=x)")}
  = help: it is called as `scaled(X, Y, factor, SIZE=64)`
"""
    assert told(lambda: scaled(Y=x)) == expected


def test_a_parameter_that_is_called_as_a_keyword_of_calls() -> None:
    x = tensor(64)
    found = told(lambda: numbered(x, x, stream=3))
    assert found.startswith("error[PK927]: `stream` is a keyword of calls, and a name in kernel `numbered`\n")
    assert found.endswith("= help: give it another name in the kernel, such as `stream_`\n")
    assert told(lambda: numbered(x, x)).startswith("error[PK863]: `numbered` is called without `stream`\n")


def test_a_constant_that_is_no_number() -> None:
    x = tensor(64, 64)
    expected = f"""\
error[PK864]: `SIZE` of `scaled` is a constant; it cannot be an argument of type str
{here('scaled(x, x, 1, "64")')}
  = help: a constant is an integer, a float, `True` or `False`
"""
    assert told(lambda: scaled(x, x, 1, "64")) == expected
    for value in (None, x, [64], float("nan"), 1j):
        assert told(partial(scaled, x, x, 1, value)).startswith("error[PK864]: ")


def test_arrays_that_no_parameter_is() -> None:
    expected = f"""\
error[PK865]: `gathered` has no array `Z` that is passed to it
{here('gathered.empty("Z", M=1, N=1)')}
  = help: it has `X`, `Y`
"""
    assert told(lambda: gathered.empty("Z", M=1, N=1)) == expected
    expected = f"""\
error[PK848]: dimension `N` of `gathered` has no value: `X` needs it
{here('gathered.empty("X", M=1)')}
"""
    assert told(lambda: gathered.empty("X", M=1)) == expected
    assert told(lambda: gathered.empty("X", M=1, K=2)).startswith("error[PK848]: dimension `K` of `gathered` does not")
    assert told(lambda: gathered.empty("X", M="1", N=1)).startswith("error[PK852]: ")


def test_a_tensor_of_the_cpu() -> None:
    x = tensor(64, 64)
    on_host = replace(x, device=Device(None, "cpu"))
    expected = f"""\
error[PK846]: `X` of `scaled` is on the host; rank 0 uses GPU 0
{here("scaled(on_host, on_host, 1)")}
  = help: `.to("cuda:0")` makes a copy there
"""
    assert told(lambda: scaled(on_host, on_host, 1)) == expected
    assert told(lambda: scaled(x, on_host, 1)).startswith("error[PK846]: `Y` of `scaled` is on the host")


def test_no_gpu(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    api.gpus = 0
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    x = tensor(64, 64)
    expected = """\
error[PK821]: there is no GPU that CUDA can use
{}
  = note: CUDA_VISIBLE_DEVICES is ``
  = help: `pkc run` without `--target`, and `pkc.simulate` in Python, simulate the ranks without a GPU
"""
    assert told(lambda: scaled(x, x, 2)) == expected.format(here("scaled(x, x, 2)"))
    assert told(lambda: gathered.empty("X", M=2)).startswith("error[PK821]: ")


def test_a_tensor_where_others_reach() -> None:
    x, y = tensor(64, 64), tensor(64, 64, at=1)
    assert told(lambda: gathered(x, y)).startswith("error[PK841]: `X` of `gathered` is reached by other ranks")


def test_a_tensor_where_others_reach_by_the_schedule(api: Api) -> None:
    x, y = tensor(64, 64), tensor(64, 64, at=1)
    added_by_all = summed.with_schedule(deterministic=False)
    expected = f"""\
error[PK841]: `Y` of `summed` is reached by other ranks: it must be an array of the mesh
{here("added_by_all(x, y)")}
  = help: `mesh.empty((M, N), "bf16", "shard", 0)` makes an array that fits
"""
    assert told(lambda: added_by_all(x, y)) == expected
    assert not api.launches


def test_mistakes_in_the_kernel_are_in_its_lines() -> None:
    x = tensor(64, 64)
    assert f"{helpers.__file__}:" in told(lambda: scaled(x, tensor(64, 64, at=1), 1, 64.0))


def test_nothing_else_than_diagnostics_comes_out() -> None:
    """Whatever is passed."""
    x, y, array = tensor(64, 64), tensor(64, 64, at=1), gathered.empty("X", M=64, N=64)
    values = [
        None,
        1,
        -1,
        2**80,
        1.5,
        "x",
        b"x",
        [],
        [x],
        [x, y],
        (),
        {},
        object(),
        array,
        array.local(0),
        x,
        1j,
        helpers.M,
    ]
    for value in values:
        for call in (
            partial(scaled, value, y, 1),
            partial(scaled, [value], [y], 1),
            partial(scaled, x, y, value),
            partial(scaled, x, y, 1, value),
            partial(scaled, x, y, 1, M=value),
            partial(gathered, value, y),
            partial(gathered.empty, "X", M=value, N=64),
            partial(gathered.empty, value, M=64, N=64),
        ):
            try:
                call()
            except pkc.PkcError as error:
                assert str(error)


def test_what_nobody_catches(tmp_path: Path) -> None:
    """No line of pkc is shown."""
    script = tmp_path / "script.py"
    text = (
        f"import pkc\ndef work(kernel):\n    kernel(1, 2, 3, 4)\nwork(pkc.load({str(ROOT / 'examples/gemm.pk')!r}))\n"
    )
    script.write_text(text, encoding="utf-8")
    shown: list[str] = []
    for debug in ("0", "1"):
        environment = os.environ | {"PKC_DEBUG": debug, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        shown.append(done.stderr)
    first = shown[0].splitlines()
    assert [line for line in first if line.startswith("  File ")] == [
        f'  File "{script}", line 4, in <module>',
        f'  File "{script}", line 3, in work',
    ]
    assert f"""
error[PK860]: `gemm` takes 3 arguments; 4 are given by position
 --> {script}:3:5
  |
3 |     kernel(1, 2, 3, 4)
  |     ^^^^^^^^^^^^^^^^^^
""" in shown[0]
    assert "launcher.py" in shown[1]


# Arrays as tensors


def test_a_rank_of_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    array = gathered.empty("X", M=64, N=64)
    expected = """\
error[PK855]: rank 4 is not one of this process, which drives 0, 1, 2, 3
  = help: with one process for each GPU, each sees its local shard; `pkc.mesh().local[0].rank` is its rank
"""
    assert told(lambda: array.local(4)) == expected


def test_without_torch_there_are_no_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    array = gathered.empty("X", M=64, N=64)

    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named '{name}'", name=name)

    monkeypatch.setattr(adapter.importlib, "import_module", missing)
    expected = """\
error[PK854]: an array becomes a tensor only with torch, which cannot be imported
  = note: No module named 'torch'
  = help: `pkc.runtime.copies` has copies to and from numpy
"""
    assert told(array.tensor) == expected


def test_a_tensor_of_an_array(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(adapter, "tensor", seen.append)
    array = gathered.empty("X", M=64, N=64)
    array.tensor()
    array.tensor(3)
    assert seen == [array.local(0), array.local(3)]


def test_an_array_that_is_read_and_written_under_two_names() -> None:
    x, more = tensor(64, 64), Tensor((64, 64), address=FIRST_POINTER + 63 * 128)
    expected = f"""\
error[PK867]: `X` and `Y` of `scaled` overlap on rank 0, and the kernel writes `Y`
{here("scaled(x, x, 1)")}
  = help: pass another array: tasks may read the one when others have already written the other
"""
    assert told(lambda: scaled(x, x, 1)) == expected
    for one, two in ((x, more), (more, x)):
        assert "PK867" in told(partial(scaled, one, two, 1))


def test_other_tensors_of_the_same_shapes_must_not_overlap_either(api: Api) -> None:
    """They would share the plan of a call that was right."""
    scaled(tensor(64, 64), tensor(64, 64, at=1), 1)
    assert "PK867" in told(lambda: scaled(tensor(64, 64, at=2), tensor(64, 64, at=2), 1))
    assert len(api.launches) == 1


def test_memory_that_follows_is_other_memory(api: Api) -> None:
    scaled(tensor(64, 64), Tensor((64, 64), address=FIRST_POINTER + 64 * 128), 1)
    assert len(api.launches) == 1


def test_one_array_that_is_only_read_twice(api: Api) -> None:
    x = tensor(64, 64)
    added(x, x, tensor(64, 64, at=1))
    assert len(api.launches) == 1
    assert "PK867" in told(lambda: added(x, tensor(64, 64, at=1), x))


def test_an_array_that_was_freed(api: Api) -> None:
    """Also if a call with it was made before."""
    mesh = pkc.mesh()
    x = mesh.empty((256, 64), "bf16", "shard", 0)
    ys = [tensor(256, 64, device=rank.device, at=1) for rank in mesh.local]
    gathered(x, ys)
    launched = len(api.launches)
    x.free()
    expected = f"""\
error[PK866]: this array of bf16[256, 64] was freed
{here("gathered(x, ys)")}
  = help: its memory may be that of another array: make a new one with `mesh.empty`
"""
    assert told(lambda: gathered(x, ys)) == expected
    for call in (x.free, x.tensor, partial(x.local, 0)):
        assert "PK866" in told(call)
    assert len(api.launches) == launched


def test_threads_launch_one_after_the_other(api: Api) -> None:
    """Each GPU gets the kernels of two threads in the same order, each on its own stream with its own tensors."""
    mesh = pkc.mesh()
    x = mesh.empty((256, 64), "bf16", "shard", 0)
    outputs = [[tensor(256, 64, device=rank.device, at=at) for rank in mesh.local] for at in (1, 2)]
    streams = [[1000 * at + rank.rank for rank in mesh.local] for at in (1, 2)]
    for ys, on in zip(outputs, streams, strict=True):
        gathered(x, ys, stream=on)
    api.launches.clear()
    started = api.cuLaunchKernelEx
    (ready,) = gathered.launcher._plans

    def slowly(config: Any, *arguments: Any) -> Any:
        time.sleep(0.0005)
        mine = outputs[int(config.hStream) // 1000 - 1]
        assert ready.plan._pointers == [x.address, *(y.address for y in mine)]
        return started(config, *arguments)

    api.cuLaunchKernelEx = slowly

    def call(at: int) -> None:
        for _ in range(8):
            gathered(x, outputs[at], stream=streams[at])

    threads = [threading.Thread(target=call, args=(at,)) for at in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ranks = len(mesh.local)
    rounds = [api.launches[at : at + ranks] for at in range(0, len(api.launches), ranks)]
    assert len(rounds) == 16
    for each in rounds:
        assert [launch.stream % 1000 for launch in each] == list(range(ranks))
        assert len({launch.stream // 1000 for launch in each}) == 1


def test_arguments_by_name_in_another_order_must_not_overlap_either(api: Api) -> None:
    x, y, z = (tensor(64, 64, at=at) for at in (1, 2, 3))
    added(Z=z, Y=y, X=x)
    added(Z=x, Y=y, X=z)
    launched = len(api.launches)
    for other in (x, y):
        assert "PK867" in told(lambda other=other: added(Z=other, Y=y, X=x))
    assert len(api.launches) == launched
