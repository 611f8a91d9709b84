"""Runs the table of cases on GPUs and compares each result with the float64 reference.

    python -m tests.gpu.check --virtual --ranks 1,2,3,4,5,8      # on one GPU
    python -m tests.gpu.check --ranks 1,2,3,4                    # on as many GPUs
    python -m tests.gpu.check --virtual --ranks 3 --only gemm_rs
    python -m tests.gpu.check --ranks 4 --only overlap=copy_engine
    python -m tests.gpu.check --ranks 2 --together               # those in which ranks wait for each other
    python -m tests.gpu.check --ranks 2 --after "mlp bf16"       # the cases behind one, where a run was ended

Each case runs at all its sizes: one launch, then five without waiting between them, all outputs poisoned before; at its
last size then as a graph that is replayed. Where ranks wait for each other, that is launched with two sets of arrays
alternately, so that data left over from the launch before is wrong: a graph of both, replayed, and launches for which
each rank is delayed at random.

Ranks run in a separate process, which is ended when it hangs or dies; the case is then wrong, and the next ones run in
another process. Kernels are compiled, and references computed, on all cores of the host. Groups of GPUs share the
cases: 2 ranks on 4 GPUs run two at a time. The exit status is 1 if a case is wrong, 2 if there are not enough GPUs.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

from pkc.codegen.artifact import Artifact
from pkc.diagnostics import PkcError
from pkc.driver.compiler import Compiled
from pkc.driver.hardware import Call
from pkc.runtime.mesh import Mesh
from pkc.sim.draw import draw_inputs
from pkc.sim.program import Program
from pkc.sim.reference import Expected, compare, reference
from tests.gpu import present
from tests.gpu.cases import CASES
from tests.gpu.lengths import Dims

ROOT = Path(__file__).parents[2]
PATIENCE = 60
"""Seconds after which a case without any output counts as hung."""

ROW = 5
"""Launches in a row."""

REPLAYS = 500
"""Replays of a graph of two launches."""

LATE = 60
"""Launches with ranks that are late."""

CHILD = [sys.executable, "-m", "tests.gpu.check"]
"""The command that runs cases on one number of ranks."""

TELL = 30
"""Seconds after which a line says how far it is."""

_FEW_RANKS = 2
"""Kernels whose ranks do not wait for each other run on at most so many."""


class Wrong(Exception):
    """A wrong result."""


# What is expected: in processes without a GPU


@cache
def _program(number: int) -> Compiled:
    return CASES[number].tile_level()


Wanted = tuple[dict[str, Any], dict[str, Expected]]


def _expected(number: int, ranks: int, dims: Dims, seed: int) -> Wanted:
    module = _program(number).module
    inputs = draw_inputs(module, ranks=ranks, dims=dims, seed=seed) | CASES[number].given(ranks)
    return inputs, reference(module, ranks=ranks, dims=dims, inputs=inputs)


def _built(number: int, ranks: int, dims: Dims) -> Artifact | str:
    try:
        return CASES[number].artifact(ranks, dims)
    except PkcError as error:
        return str(error).splitlines()[0]


# One number of ranks, in this process


class Runner:
    """Cases on one mesh; `pool` compiles kernels and computes references ahead."""

    def __init__(self, mesh: Mesh, pool: ProcessPoolExecutor) -> None:
        self._mesh, self._pool = mesh, pool
        self._futures: dict[tuple[Any, ...], Future[Any]] = {}
        self._lots = mesh.empty((1 << 26,), "i32", "symmetric")

    def run(self, number: int) -> str:
        """Run one case; returns the text to print. Raises `Wrong` and `PkcError`."""
        case, worst = CASES[number], 0.0
        sizes = case.sizes(self._mesh.ranks)
        together = not case.alone and self._mesh.ranks > 1
        for dims in sizes:
            worst = max(worst, self._size(number, dims, replayed=not together and dims is sizes[-1]))
        told = f"error/bound {worst:.3f}"
        if sizes and together:
            self._many(number, sizes[-1])
            told += f", {2 * REPLAYS} replays, {LATE} launches with late ranks"
        return told

    def ahead(self, number: int) -> None:
        """Begin to compile a case and to compute its reference."""
        case, ranks = CASES[number], self._mesh.ranks
        sizes = case.sizes(ranks)
        for dims in sizes:
            self._build(number, dims)
            self._expect(number, dims, 1)
        if sizes and not case.alone and ranks > 1:
            self._expect(number, sizes[-1], 2)

    def _expect(self, number: int, dims: Dims, seed: int) -> Future[Wanted]:
        case = CASES[number]
        order = case.schedule.get("deterministic", "")  # the bound counts roundings
        key = (case.text, case.routing, order, *case.constants.items(), *dims.items(), seed)
        if key not in self._futures:
            self._futures[key] = self._pool.submit(_expected, number, self._mesh.ranks, dims, seed)
        return self._futures[key]

    def _build(self, number: int, dims: Dims) -> Future[Artifact | str]:
        key = (number, *dims.items())
        if key not in self._futures:
            self._futures[key] = self._pool.submit(_built, number, self._mesh.ranks, dims)
        return self._futures[key]

    def _call(self, number: int, dims: Dims, inputs: Mapping[str, Any]) -> Call:
        artifact = self._build(number, dims).result()
        if isinstance(artifact, str):
            raise Wrong(f"does not compile: {artifact}")
        return Call(artifact, self._mesh, dims, inputs)

    def _size(self, number: int, dims: Dims, *, replayed: bool) -> float:
        inputs, expected = self._expect(number, dims, 1).result()
        call = self._call(number, dims, inputs)
        worst = 0.0
        for launches in (1, ROW):
            call.fill(inputs)
            for _ in range(launches):
                call.launch()
            self._mesh.synchronize(PATIENCE / 2)
            worst = max(worst, _compared(number, call, expected, f"{dims}, {launches} launches"))
        if replayed:
            call.fill(inputs)
            self._replay([call], ROW)
            _compared(number, call, expected, f"{dims}, replayed")
        call.free()
        return worst

    def _many(self, number: int, dims: Dims) -> None:
        both = [self._expect(number, dims, seed).result() for seed in (1, 2)]
        calls = [self._call(number, dims, inputs) for inputs, _ in both]
        # One kernel, with its counters and buffers, for both sets of arrays.
        calls[1].kernel = calls[0].kernel
        for call in calls:
            call.launch()
        self._mesh.synchronize(PATIENCE / 2)
        for what, launch in (("replayed", partial(self._replay, times=REPLAYS)), ("with late ranks", self._late)):
            for call, (inputs, _) in zip(calls, both, strict=True):
                call.fill(inputs)
            launch(calls)
            for call, (_, expected) in zip(calls, both, strict=True):
                _compared(number, call, expected, f"{dims}, {what}")
        for call in calls:
            call.free()

    def _replay(self, calls: Sequence[Call], times: int) -> None:
        mesh, driver = self._mesh, self._mesh.driver
        with mesh.current(mesh.local[0]):
            stream = int(driver.cuStreamCreate(int(driver.api.CUstream_flags.CU_STREAM_NON_BLOCKING)))
            driver.cuStreamBeginCapture(stream, driver.api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
            for call in calls:
                call.launch(stream)
            graph = driver.cuStreamEndCapture(stream)
            captured = driver.cuGraphInstantiate(graph, 0)
            for _ in range(times):
                driver.cuGraphLaunch(captured, stream)
        mesh.synchronize(PATIENCE / 2, stream)
        with mesh.current(mesh.local[0]):
            driver.cuGraphExecDestroy(captured)
            driver.cuGraphDestroy(graph)
            driver.cuStreamDestroy(stream)

    def _late(self, calls: Sequence[Call]) -> None:
        """Delay each rank by memory writes of random length, so that ranks are several launches ahead of each other."""
        chance = random.Random(11)
        for number in range(LATE):
            for rank in self._mesh.local:
                size = chance.choice((0, 0, 1, 16, 64, 255)) << 20
                with self._mesh.current(rank):
                    if size:
                        address = self._mesh.heap.address(rank.rank, self._lots.offset)
                        self._mesh.driver.cuMemsetD8Async(address, 0, size, rank.stream)
            calls[number % 2].launch()
        self._mesh.synchronize(PATIENCE / 2)


def _compared(number: int, call: Call, expected: Mapping[str, Expected], where: str) -> float:
    kernel = _program(number).kernel
    names = Program(kernel).outputs
    found = [
        item
        for outputs in call.all_outputs(kernel.in_any_order)
        for item in compare({array: outputs[array] for array in names}, expected)
    ]
    for item in found:
        if not item.ok:
            raise Wrong(f"{where}: {item.array}{list(item.where)} {item.problem or item.reason or item.doubt}")
    return max(item.worst_ratio for item in found)


def run_here(ranks: int, virtual: bool, numbers: Sequence[int], cores: int) -> None:
    """Run cases, and print for each when it begins and how it ended. Ends the process."""
    pool = ProcessPoolExecutor(cores, mp_context=multiprocessing.get_context("fork"))
    pool.submit(os.getpid).result()  # fork before this process uses a GPU
    mesh = Mesh.virtual(ranks) if virtual else Mesh.single_process(range(ranks))
    runner = Runner(mesh, pool)
    for number in numbers:
        runner.ahead(number)
    for number in numbers:
        _say("begin", number)
        started = time.perf_counter()
        try:
            told = runner.run(number)
        except Wrong as error:
            _say("wrong", number, str(error))
        except PkcError as error:
            # Kernels may still run, or the driver may have given up.
            _say("wrong", number, str(error).splitlines()[0])
            os._exit(1)
        else:
            _say("right", number, f"{told}, {time.perf_counter() - started:.1f} s")
    pool.shutdown()
    os._exit(0)


def _say(what: str, number: int, text: str = "") -> None:
    sys.stdout.write(f"@{what} {number} {text}\n")
    sys.stdout.flush()


# All of it, each number of ranks in separate processes


class _Tally:
    """How the cases `numbers` end, in whatever order; prints what was found."""

    def __init__(self, kind: str, numbers: Sequence[int]) -> None:
        self._kind, self._left, self._cases = kind, list(numbers), len(numbers)
        self.wrong, self._lock = 0, threading.Lock()
        self._started = self._told = time.perf_counter()
        self._last = ""
        """The name of the case up to which all have run."""

    def add(self, number: int, right: bool, text: str) -> None:
        with self._lock:
            if number == self._left[0]:
                self._last = CASES[number].name
            self._left.remove(number)
            self.wrong += not right
            if not right or self._cases == 1:
                self._print(f"{CASES[number].name:34} {'' if right else 'WRONG: '}{text}")
            elif time.perf_counter() - self._told > TELL:
                self._told = time.perf_counter()
                ran = f"{self._cases - len(self._left)} of {self._cases} cases ran, {self.wrong} wrong"
                self._print(f"{ran}, all up to {self._last!r}, {self._told - self._started:.0f} s")

    def end(self) -> None:
        passed = time.perf_counter() - self._started
        right = self._cases - len(self._left) - self.wrong
        self._print(f"{right} of {self._cases} cases are right, {passed:.0f} s")

    def _print(self, text: str) -> None:
        print(f"{self._kind:16} {text}", flush=True)


def run_ranks(ranks: int, virtual: bool, numbers: Sequence[int], groups: Sequence[str | None] = (None,)) -> int:
    """Run cases on `ranks` ranks; how many were wrong. Prints those, and how long it took.

    `groups` are the GPUs of the processes that run at the same time, as CUDA_VISIBLE_DEVICES names them; None is
    whatever there is.
    """
    tally, over = _Tally(f"{ranks} virtual ranks" if virtual else f"{ranks} GPUs", numbers), threading.Event()
    cores = max(1, (os.cpu_count() or 1) // len(groups))
    command = [*CHILD, "--ranks", str(ranks), *["--virtual"] * virtual, "--cores", str(cores)]

    def part(index: int) -> None:
        left = list(numbers[index :: len(groups)])
        while left and not over.is_set():
            for number, right, text in _verdicts(command, virtual, tuple(left), groups[index], over):
                left.remove(number)
                tally.add(number, right, text)

    with ThreadPoolExecutor(len(groups)) as threads:
        try:
            list(threads.map(part, range(len(groups))))
        except BaseException:
            over.set()  # the pool waits for its threads
            raise
    tally.end()
    return tally.wrong


def groups_of(ranks: int, gpus: int) -> list[str | None]:
    """Disjoint groups of as many GPUs as there are ranks, for `run_ranks`; `gpus` are visible."""
    if gpus < 2 * ranks:
        return [None]
    names = present.names(gpus)
    return [",".join(names[first : first + ranks]) for first in range(0, gpus - ranks + 1, ranks)]


def _verdicts(
    command: Sequence[str], virtual: bool, numbers: Sequence[int], gpus: str | None, over: threading.Event
) -> Iterator[tuple[int, bool, str]]:
    """The verdicts of one process, at least one: on the case at which it hung or died, or on the first one. None more
    once it is `over`."""
    command = [*command, "--here", ",".join(map(str, numbers))]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    if gpus is not None:
        environment["CUDA_VISIBLE_DEVICES"] = gpus
    if virtual:  # copy engines have more streams than a GPU has queues by default
        environment["CUDA_DEVICE_MAX_CONNECTIONS"] = "32"
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        )
        at: int | None = numbers[0]
        try:
            for line in _lines(process, over):
                what, number, text = line[1:].rstrip("\n").split(" ", 2)
                at = int(number) if what == "begin" else None
                if what != "begin":
                    yield int(number), what == "right", text
            if at is not None and not over.is_set():
                errors.seek(0)
                status = process.poll()
                ended = f"not done after {PATIENCE} s" if status is None else f"ended with status {status}"
                yield at, False, " | ".join([ended, *errors.read().strip().splitlines()[-3:]])
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _lines(process: subprocess.Popen[str], over: threading.Event) -> Iterator[str]:
    """What a process says, until it has ended, or has said nothing for too long, or it is `over`."""
    assert process.stdout is not None
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    reader = threading.Thread(target=lambda: [lines.put(line) for line in process.stdout or ()], daemon=True)
    reader.start()
    heard = time.monotonic()
    while time.monotonic() - heard < PATIENCE and not over.is_set():
        # What it has started holds the pipe open, so that its end says nothing.
        ended = process.poll() is not None
        try:
            line = lines.get(timeout=0.2)
        except queue.Empty:
            if ended:
                return
            continue
        heard = time.monotonic()
        if line.startswith("@"):
            yield line


def chosen(ranks: int, only: str, together: bool = False, after: str = "") -> list[int]:
    """The cases of a name, or with a word of it, or all of them, that are worth running on so many ranks.

    `together` leaves out those whose ranks do not wait for each other, `after` all up to the case of that name.

    A name that no case has ends the program: nothing would be checked.
    """
    numbers = [number for number, case in enumerate(CASES) if only in ("", case.name, *case.name.split())]
    if not numbers:
        sys.exit(f"no case is called {only!r}, or has that word in its name")
    if after:
        behind = next((number for number, case in enumerate(CASES) if case.name == after), None)
        if behind is None:
            sys.exit(f"no case is called {after!r}")
        numbers = [number for number in numbers if number > behind]
        if not numbers:
            sys.exit(f"no case is behind {after!r}")
    return [number for number in numbers if not CASES[number].alone or (ranks <= _FEW_RANKS and not together)]


def check(ranks: Sequence[int], virtual: bool, only: str = "", together: bool = False, after: str = "") -> bool:
    """Run the cases that are wanted (`chosen`) on each number of ranks; whether all are right."""
    gpus = present.gpus()
    return not sum(
        run_ranks(each, virtual, chosen(each, only, together, after), groups_of(1 if virtual else each, gpus))
        for each in ranks
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="1", help="numbers of ranks, separated by commas")
    parser.add_argument("--virtual", action="store_true", help="all ranks on one GPU")
    parser.add_argument("--only", default="", metavar="CASE", help="one case, by its name, or those with a word of it")
    parser.add_argument("--together", action="store_true", help="only cases in which ranks wait for each other")
    parser.add_argument("--after", default="", metavar="CASE", help="only cases behind this one")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    ranks = [int(number) for number in given.ranks.split(",")]
    if given.here is None:
        present.gpus(1 if given.virtual else max(ranks))
        return int(not check(ranks, given.virtual, given.only, given.together, given.after))
    run_here(ranks[0], given.virtual, [int(number) for number in given.here.split(",")], given.cores)
    return 0


if __name__ == "__main__":
    sys.exit(main())
