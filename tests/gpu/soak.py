"""Launches again and again: every launch of every family must give the bits of the first.

    python -m tests.gpu.soak --ranks 2                       # 100,000 launches, on 2 GPUs
    python -m tests.gpu.soak --ranks 2 --virtual             # on one
    python -m tests.gpu.soak --ranks 2 --launches 1000000 --seconds 600

Two sets of arrays take turns, so that data left over from the launch before is wrong, and what a kernel writes is NaN
before each launch. Launches follow each other without waiting: on one stream; on two that take turns, each late by
random times on each rank; on one with ranks that are late; and as replays of a graph of both sets. GPUs compare by
themselves, of a graph after every fourth replay.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pkc.codegen.artifact import Artifact
from pkc.diagnostics import PkcError
from pkc.driver.hardware import Call
from pkc.runtime import torch as adapter
from pkc.runtime.mesh import Mesh
from pkc.sim.draw import draw_inputs
from pkc.sim.program import Program
from tests.gpu import present
from tests.gpu.cases import CASES
from tests.gpu.lengths import Dims

ROUND = {"a stream": 200, "two streams": 100, "late ranks": 40, "a graph": 200}
"""Launches of a kind in a round."""

REPLAYS = 4
"""Replays of a graph in a row."""

MOST_CYCLES = 300_000
"""How late a rank is at most."""

PATIENCE = 30.0

say = partial(print, flush=True)


@dataclass(frozen=True)
class Made:
    artifact: Artifact
    inputs: Sequence[Mapping[str, Any]]
    outputs: Sequence[str]


def families(ranks: int) -> Iterator[int]:
    """The first case of each example, of each with packets, and of each way to overlap of the GEMMs."""
    known: set[tuple[str, str, str]] = set()
    for number, case in enumerate(CASES):
        overlap = case.schedule.get("overlap", "") if "gemm" in case.text else ""
        key = case.text, overlap, case.schedule.get("packets", "")
        plain = "\n" not in case.text and "uneven" not in case.name
        fixed = case.schedule.get("deterministic") != "False"
        if plain and fixed and key not in known and case.sizes(ranks):
            known.add(key)
            yield number


def dims_of(number: int, ranks: int) -> Dims:
    """Sizes of a case that are neither the least nor the greatest."""
    sizes = CASES[number].sizes(ranks)
    return sizes[len(sizes) // 2]


def make(number: int, ranks: int) -> Made | str:
    """A case with two sets of inputs; or why there is none."""
    case, dims = CASES[number], dims_of(number, ranks)
    try:
        compiled = case.tile_level()
        if compiled.kernel.in_any_order:
            return "its sums are in any order"
        inputs = [draw_inputs(compiled.module, ranks=ranks, dims=dims, seed=seed) for seed in (1, 2)]
        return Made(case.artifact(ranks, dims), inputs, Program(compiled.kernel).outputs)
    except PkcError as error:
        return str(error).splitlines()[0]


@dataclass
class Set:
    """One set of arrays: what is written on each rank, as integers, and what the first launch wrote."""

    call: Call
    outputs: Sequence[Sequence[Any]]
    poisoned: Sequence[Sequence[Any]]
    wanted: list[list[Any]] = field(default_factory=list[list[Any]])


class Soak:
    """One case, on all ranks of this process."""

    def __init__(self, mesh: Mesh, case: int, made: Made) -> None:
        self._mesh, self._torch = mesh, importlib.import_module("torch")
        torch = self._torch
        dims = dims_of(case, mesh.ranks)
        calls = [Call(made.artifact, mesh, dims, inputs) for inputs in made.inputs]
        # One kernel, with its counters and buffers, for both sets.
        calls[1].kernel = calls[0].kernel
        self._streams = [[torch.cuda.Stream(device=rank.device) for rank in mesh.local] for _ in range(2)]
        self._bad = [torch.zeros((), dtype=torch.int64, device=f"cuda:{rank.device}") for rank in mesh.local]
        mesh_arrays = [call.arrays for call in calls]
        kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
        self._sets = [
            Set(
                call,
                [self._views(arrays, made.outputs, rank.rank, kinds) for rank in mesh.local],
                [
                    self._views(arrays, [name for name in made.outputs if name not in inputs], rank.rank, kinds)
                    for rank in mesh.local
                ],
            )
            for call, arrays, inputs in zip(calls, mesh_arrays, made.inputs, strict=True)
        ]
        for one in self._sets:
            self._poison(one, self._streams[0])
            one.call.launch(self._streams[0])
            mesh.synchronize(PATIENCE, self._streams[0])
            one.wanted = [[view.clone() for view in views] for views in one.outputs]
        torch.cuda.synchronize()
        self._chance = random.Random(case)

    def run(self, launches: int, seconds: float) -> dict[str, int]:
        """Launch so often, or for so long; how many launches of each kind there were, and how many wrong results."""
        kinds: dict[str, Callable[[int], None]] = {
            "a stream": lambda count: self._row(count, 1),
            "two streams": lambda count: self._row(count, 2, late=True),
            "late ranks": lambda count: self._row(count, 1, late=True),
            "a graph": self._replay,
        }
        done = dict.fromkeys(kinds, 0)
        began = time.monotonic()
        while sum(done.values()) < launches and time.monotonic() - began < seconds:
            for kind, launch in kinds.items():
                launch(ROUND[kind])
                done[kind] += ROUND[kind]
        return {**done, "wrong": int(sum(bad.item() for bad in self._bad))}

    def free(self) -> None:
        for one in self._sets:
            one.call.free()

    def _row(self, count: int, streams: int, *, late: bool = False) -> None:
        for number in range(count):
            mine = self._streams[number % streams]
            if late:
                self._delay(mine)
            one = self._sets[number % 2]
            self._poison(one, mine)
            one.call.launch(mine)
            self._compare(one, mine)
        for mine in self._streams:
            self._mesh.synchronize(PATIENCE, mine)

    def _replay(self, count: int) -> None:
        mesh, driver = self._mesh, self._mesh.driver
        with mesh.current(mesh.local[0]):
            stream = int(driver.cuStreamCreate(int(driver.api.CUstream_flags.CU_STREAM_NON_BLOCKING)))
            driver.cuStreamBeginCapture(stream, driver.api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
            for one in self._sets:
                one.call.launch(stream)
            graph = driver.cuStreamEndCapture(stream)
            captured = driver.cuGraphInstantiate(graph, 0)
        replaying = self._torch.cuda.ExternalStream(stream, device=f"cuda:{mesh.local[0].device}")
        for _ in range(count // 2 // REPLAYS):
            for one in self._sets:
                self._poison(one, self._streams[0])
            for mine in self._streams[0]:
                replaying.wait_stream(mine)
            with mesh.current(mesh.local[0]):
                for _ in range(REPLAYS):
                    driver.cuGraphLaunch(captured, stream)
            for mine in self._streams[0]:
                mine.wait_stream(replaying)
            for one in self._sets:
                self._compare(one, self._streams[0])
        mesh.synchronize(PATIENCE, self._streams[0])
        with mesh.current(mesh.local[0]):
            driver.cuGraphExecDestroy(captured)
            driver.cuGraphDestroy(graph)
            driver.cuStreamDestroy(stream)

    def _delay(self, streams: Sequence[Any]) -> None:
        for rank, stream in zip(self._mesh.local, streams, strict=True):
            with self._torch.cuda.device(rank.device), self._torch.cuda.stream(stream):
                self._torch.cuda._sleep(self._chance.choice((1, 1, MOST_CYCLES // 10, MOST_CYCLES)))

    def _poison(self, one: Set, streams: Sequence[Any]) -> None:
        for views, stream in zip(one.poisoned, streams, strict=True):
            with self._torch.cuda.stream(stream):
                for view in views:
                    view.fill_(-1)  # a NaN of any type of floats

    def _compare(self, one: Set, streams: Sequence[Any]) -> None:
        for views, wanted, bad, stream in zip(one.outputs, one.wanted, self._bad, streams, strict=True):
            with self._torch.cuda.stream(stream):
                for view, right in zip(views, wanted, strict=True):
                    bad += (view != right).any()

    def _views(self, arrays: Mapping[str, Any], names: Sequence[str], rank: int, kinds: Mapping[int, Any]) -> list[Any]:
        tensors = [adapter.tensor(arrays[name].local(rank)) for name in names]
        return [tensor.view(kinds[tensor.element_size()]) for tensor in tensors if tensor.numel()]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--virtual", action="store_true", help="all ranks on one GPU")
    parser.add_argument("--launches", type=int, default=100_000, help="how many at least, of all kernels together")
    parser.add_argument("--seconds", type=float, default=120.0, help="how long at most, of all kernels together")
    parser.add_argument("--only", default="", help="cases whose name has this")
    given = parser.parse_args(arguments)
    if given.virtual:  # copy engines have more streams than a GPU has queues by default
        os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "32"
    gpus = present.gpus(1 if given.virtual else given.ranks)
    numbers = [number for number in families(given.ranks) if given.only in CASES[number].name]
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        made: dict[int, Future[Made | str]] = {number: pool.submit(make, number, given.ranks) for number in numbers}
        mesh = Mesh.virtual(given.ranks) if given.virtual else Mesh.single_process(range(gpus))
        ready = {number: future.result() for number, future in made.items()}
    began, total = time.monotonic(), dict[str, int]()
    for number, found in ready.items():
        name = CASES[number].name
        if isinstance(found, str):
            say(f"{name:40} not run: {found}")
            continue
        soak = Soak(mesh, number, found)
        counts = soak.run(-(-given.launches // len(ready)), given.seconds / len(ready))
        soak.free()
        say(f"{name:40} {sum(counts.values()) - counts['wrong']:7} launches, {counts['wrong']} wrong")
        total = {kind: total.get(kind, 0) + count for kind, count in counts.items()}
    wrong = total.pop("wrong", 0)
    kinds = ", ".join(
        f"{count} on {kind}" if "late" not in kind else f"{count} with {kind}" for kind, count in total.items()
    )
    where = f"{mesh.ranks} virtual ranks of one GPU" if given.virtual else f"{mesh.ranks} GPUs"
    say(
        f"{sum(total.values())} launches of {len(ready)} kernels on {where} in {time.monotonic() - began:.0f} s:"
        f" {kinds}; {wrong} wrong"
    )
    return int(bool(wrong) or not total)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
