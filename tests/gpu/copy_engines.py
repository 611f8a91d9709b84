"""Copy engines on real GPUs: `python -m tests.gpu.copy_engines --ranks 4`, under a time limit.

- what runs beside a kernel that fills all SMs of a GPU;
- every example with `overlap=copy_engine` against the float64 reference, on all GPUs and on two ranks of one, replays
  and late ranks among them (`tests/gpu/check.py`);
- the time of a launch beside that of the default overlap, in one process; under `torchrun` if there is torch.

Each line is a separate process with a time limit, and all together have `--limit` seconds. The exit status is 1 if
one fails.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pkc.codegen.build import build
from pkc.diagnostics import PkcError
from pkc.driver.compiler import load
from pkc.driver.hardware import Call
from pkc.runtime.enqueue import Await, Move, Write, calls
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from pkc.runtime.rank import Side
from tests.gpu import present, smoke_kernels

ROOT = Path(__file__).parents[2]
SIZES: dict[str, Sequence[dict[str, int]]] = {
    "ag_gemm": [{"M": size, "N": size, "K": size} for size in (4096, 8192)],
    "gemm_rs": [{"M": size, "N": size, "K": size} for size in (4096, 8192)],
    "gemm_ar": [{"M": 8192, "N": 8192, "K": 8192}],
    "all_gather": [{"M": 8192, "N": 8192}],
    "reduce_scatter": [{"M": 8192, "N": 8192}],
}
"""Dimensions of all ranks together, but for K of `gemm_rs` and `gemm_ar` and N of `ag_gemm`: those are divided by the
ranks, as `pkc bench` does."""

_DIVIDED = {"ag_gemm": "N", "gemm_rs": "K", "gemm_ar": "K"}
_CTAS = 32
"""The most CTAs that an SM can have."""

_REPEATED = 20

say = partial(print, flush=True)


# What runs beside a kernel that fills the GPU


def beside() -> int:
    """Try each thing that is enqueued beside a kernel while every SM of its GPU has as many CTAs as it can."""
    mesh = Mesh.single_process()
    first, other = mesh.local[0], mesh.local[-1]
    engines = mesh.driver.attribute("ASYNC_ENGINE_COUNT", first.device)
    say(f"GPU 0 of {len(mesh.local)} has {first.sms} SMs and {engines} copy engines that programs see")
    stall = LoadedKernel(replace(smoke_kernels.stall(), shared_bytes=0), mesh, grid=_CTAS * first.sms)
    stall({"seconds": 0})
    mesh.synchronize()
    room = [mesh.heap.allocate(64 << 20) for _ in range(2)]
    (side,) = mesh.beside(1)[0]
    source, target = (mesh.heap.address(0, offset) for offset in room)
    there = mesh.heap.address(other.rank, room[1])
    tried: list[tuple[str, Any]] = []
    for count in (64, 64 << 10, 2 << 20, 32 << 20):
        tried += [(f"copy {count} bytes within the GPU", Move(source, target, count))]
        tried += [(f"copy {count} bytes to a peer", Move(source, there, count))] * (other is not first)
    for rows in (16, 128):
        tried += [(f"copy {rows} rows of 512 bytes within the GPU", Move(source, target, 512, rows, 4096, 4096))]
        tried += [(f"copy {rows} rows of 512 bytes to a peer", Move(source, there, 512, rows, 4096, 4096))] * (
            other is not first
        )
    tried += [("write a value here and wait for it", (Write(source, 1), Await(source, 1)))]
    tried += [("write a value at a peer", Write(there, 1))] * (other is not first)
    for what, action in tried:
        actions = action if isinstance(action, tuple) else (action,)
        _try(mesh, side, what, lambda actions=actions: _enqueue(mesh, side, actions), stall)
    clear = partial(mesh.driver.cuMemsetD8Async, target, 0, 4096, side.stream)
    _try(mesh, side, "clear 4096 bytes", clear, stall)
    return 0


def _enqueue(mesh: Mesh, side: Side, actions: Sequence[Any]) -> None:
    for call in calls(mesh.driver.api, actions):
        getattr(mesh.driver, call.name)(*call.on(side.stream))


def _try(mesh: Mesh, side: Side, what: str, enqueue: Callable[[], None], stall: LoadedKernel) -> None:
    driver, first = mesh.driver, mesh.local[0]
    with mesh.current(first):
        for full in (False, True):
            if full:
                stall({"seconds": 1})
            began = time.perf_counter()
            for _ in range(1 if full else 10):
                enqueue()
            driver.cuEventRecord(side.event, side.stream)
            enqueued = time.perf_counter() - began
            while int(driver.api.cuEventQuery(side.event)[0]) and time.perf_counter() - began < 3:
                pass
            passed = time.perf_counter() - began
            if not full:
                alone = passed / 10
    mesh.synchronize(30)
    how = "beside the kernel" if passed < 0.5 else "AFTER the kernel"
    blocked = "" if enqueued < 0.5 else ", and the HOST waits"
    say(f"  {what:44} alone {alone * 1e6:8.1f} us; {how}{blocked}")


# Times


def times(ranks: int) -> int:
    """One line for each example and size: milliseconds of a launch, and how much of it the host takes to enqueue."""
    mesh = Mesh.single_process(range(ranks))
    say(f"{'ms a launch, ' + str(ranks) + ' GPUs':36} {'default':>9} {'copy_engine':>12} {'(host)':>8} {'x':>6}")
    for name, sizes in SIZES.items():
        for size in sizes:
            dims = {dim: n // ranks if dim == _DIVIDED.get(name) else n for dim, n in size.items()}
            shown = "x".join(map(str, size.values()))
            try:
                (default, _), (copied, host) = (
                    _time(mesh, name, dims, how) for how in ({}, {"overlap": "copy_engine"})
                )
            except PkcError as error:
                say(f"{name + ' ' + shown:36} {str(error).splitlines()[0]}")
                return 1
            say(f"{name + ' ' + shown:36} {default:9.3f} {copied:12.3f} {host:8.3f} {copied / default:6.2f}")
    return 0


def _time(mesh: Mesh, name: str, dims: dict[str, int], schedule: dict[str, str]) -> tuple[float, float]:
    path = ROOT / "examples" / f"{name}.pk"
    call = Call(build(load(path, schedule=schedule, level="machine").module), mesh, dims, {})
    for _ in range(3):
        call.launch()
    mesh.synchronize(30)
    best: list[tuple[float, float]] = []
    for _ in range(3):
        began = time.perf_counter()
        for _ in range(_REPEATED):
            call.launch()
        enqueued = time.perf_counter()
        mesh.synchronize(30)
        best.append((time.perf_counter() - began, enqueued - began))
    call.free()
    whole, host = min(best)
    return whole / _REPEATED * 1e3, host / _REPEATED * 1e3


# All of it


def _commands(ranks: int) -> Iterator[tuple[str, list[str], int]]:
    """The name of each run, its command, and its limit in seconds."""
    python = [sys.executable, "-m"]
    yield "beside a full GPU", [*python, "tests.gpu.copy_engines", "--here", "beside"], 90
    check = [*python, "tests.gpu.check", "--only", "overlap=copy_engine"]
    yield "results", [*check, "--ranks", str(ranks)], 180
    yield "results of ranks on one GPU", [*check, "--virtual", "--ranks", "2"], 180
    yield "times", [*python, "tests.gpu.copy_engines", "--here", "times", "--ranks", str(ranks)], 90
    if importlib.util.find_spec("torch") is not None:
        for name in ("ag_gemm", "gemm_rs"):
            run = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), "-m", "pkc", "bench"]
            command = [*python, *run, f"examples/{name}.pk", "--sizes", "4096,8192", "--overlap", "copy_engine"]
            yield f"{name} under torchrun", command, 120


def _run(name: str, command: Sequence[str], limit: int) -> bool:
    """Run a command in a new process group; if it hangs, the whole group is ended."""
    say(f"--- {name}")
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    try:
        status = process.wait(limit)
    except subprocess.TimeoutExpired:
        status = f"not done after {limit} s"
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
    if status:
        say(f"FAILED: {name}: {status}")
    return not status


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, help="all GPUs, if it is not given")
    parser.add_argument("--only", default="", help="run only lines with this in the name")
    parser.add_argument("--limit", type=int, default=540, help="seconds for all of it; the rest is not run")
    parser.add_argument("--here", choices=("beside", "times"), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.here == "beside":
        return beside()
    ranks = present.gpus(given.ranks)
    if given.here == "times":
        return times(ranks)
    end = time.monotonic() + given.limit
    done: dict[str, bool] = {}
    for name, command, limit in _commands(ranks):
        left = int(end - time.monotonic())
        if given.only in name:
            done[name] = left > 0 and _run(name, command, min(limit, left))
    bad = [name for name, right in done.items() if not right]
    say(f"{len(done) - len(bad)} of {len(done)} are right{': not, or not run, ' if bad else ''}{', '.join(bad)}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
