"""Faults in one process for each GPU: every process raises who waits for what, and goes on with a new mesh.

    python -m tests.gpu.faults --ranks 2

The last rank does something else than the others, each time on a mesh that all have made anew. A line for each fault
and rank says after how long it raised what. Waits are limited to a second, but where a process ends.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from pkc.codegen.artifact import Artifact
from pkc.diagnostics import PkcError
from pkc.driver.builder import artifact_for
from pkc.driver.compiler import load_program
from pkc.runtime.arrays import Array
from pkc.runtime.copies import download, upload
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from tests.examples.test_examples import EXAMPLES
from tests.gpu import present

LIMIT = 1.0
PATIENCE = 8.0
M, N, K = 1024, 512, 128
FAULTS = ("late", "kernel", "shape", "engines", "unasked", "failed", "killed")
"""What the last rank does: nothing; another kernel; another size; nothing, where copy engines wait as well; nothing,
and no process calls pkc; its launch fails; it is killed."""


def say(*lines: str) -> None:
    """Print lines at once: other processes print, too."""
    print("\n    ".join(lines) + "\n", end="", flush=True)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--build", action="store_true", help="compile alone, into the cache")
    parser.add_argument("--faults", default=",".join(FAULTS))
    given = parser.parse_args(arguments)
    if given.build:
        _artifacts(given.ranks)
        return 0
    ranks = present.gpus(given.ranks)
    before = _left()
    context = multiprocessing.get_context("spawn")
    faults = given.faults.split(",")
    processes = [context.Process(target=_rank, args=(rank, ranks, faults, str(os.getpid()))) for rank in range(ranks)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        process.kill()
    expected = [0] * (ranks - 1) + [-signal.SIGKILL if "killed" in faults else 0]
    codes = [process.exitcode for process in processes]
    time.sleep(0.2)
    left = _left() - before
    say(f"processes ended with {codes}; left behind: {sorted(left) or 'nothing'}")
    return int(codes != expected or bool(left))


def _left() -> set[str]:
    """Files in shared memory, and sockets of pkc."""
    sockets = {line.split()[-1] for line in Path("/proc/net/unix").read_text().splitlines() if "pkc" in line}
    return {str(path) for path in Path("/dev/shm").iterdir()} | sockets


def _artifacts(ranks: int) -> dict[str, Artifact]:
    sizes: Mapping[str, Mapping[str, int]] = {
        "gemm_rs": {"M": M, "N": N, "K": K},
        "all_reduce": {"M": M, "N": N},
        "ag_gemm": {"M": M, "N": N, "K": K},
    }
    engines = {"ag_gemm": {"overlap": "copy_engine"}}
    return {
        name: artifact_for(
            load_program(EXAMPLES / f"{name}.pk"), dims=dims, ranks=ranks, schedule=engines.get(name, {})
        )
        for name, dims in sizes.items()
    }


class _Kernels:
    """The kernels on a new mesh, with inputs whose products are exact."""

    def __init__(self, artifacts: Mapping[str, Artifact]) -> None:
        self.mesh = mesh = Mesh.from_torchrun()
        self.rank, self.ranks = mesh.local[0].rank, mesh.ranks
        self._loaded = {name: LoadedKernel(artifact, mesh) for name, artifact in artifacts.items()}
        self._a, self._b = mesh.empty((M, K), "bf16"), mesh.empty((K, N), "bf16")
        self._c, self._half = mesh.empty((M, N), "bf16", "shard", 0), mesh.empty((M // 2, N), "bf16", "shard", 0)
        self._x, self._y = mesh.empty((M, N), "bf16"), mesh.empty((M, N), "bf16", "replicate")
        self._shard, self._d = mesh.empty((M, K), "bf16", "shard", 0), mesh.empty((M, N), "bf16")
        for array in (self._a, self._b, self._x, self._shard):
            upload(mesh, array, self.rank, self._drawn(array, self.rank))

    def _drawn(self, array: Array, rank: int) -> np.ndarray:
        shape = array.local(self.rank).shape  # shards are equal
        return np.random.default_rng((array.offset, rank)).integers(-1, 2, shape).astype(np.float32)

    def gemm(self) -> None:
        arguments = {"A": [self._a.local(self.rank)], "B": [self._b.local(self.rank)], "C": self._c}
        self._loaded["gemm_rs"](arguments)

    def small_gemm(self) -> None:
        a = self._a.local(self.rank)
        half = type(a)(a.address, (M // 2, K), a.strides, a.dtype, a.device)
        self._loaded["gemm_rs"]({"A": [half], "B": [self._b.local(self.rank)], "C": self._half})

    def fails(self) -> None:
        """A launch with more shared memory than there is."""
        self._loaded["gemm_rs"]._configs[self.rank].sharedMemBytes = 1 << 20
        self.gemm()

    def sums(self) -> None:
        self._loaded["all_reduce"]({"X": [self._x.local(self.rank)], "Y": self._y})

    def gather(self) -> None:
        arguments = {"A": self._shard, "B": [self._b.local(self.rank)], "C": [self._d.local(self.rank)]}
        self._loaded["ag_gemm"](arguments)

    def right(self) -> bool:
        """Whether three launches of each give what they must."""
        for _ in range(3):
            for launch in (self.gemm, self.sums, self.small_gemm, self.gather):
                launch()
        self.mesh.synchronize()
        ranks = range(self.ranks)
        product = sum(self._drawn(self._a, rank) @ self._drawn(self._b, rank) for rank in ranks)
        shard = np.asarray(product)[self.rank * M // self.ranks :][: M // self.ranks]
        found = download(self.mesh, self._c, self.rank).astype(np.float32)
        added = sum(self._drawn(self._x, rank) for rank in ranks)
        return bool((found == shard).all()) and bool(
            (download(self.mesh, self._y, self.rank).astype(np.float32) == added).all()
        )


def _rank(rank: int, ranks: int, faults: Sequence[str], name: str) -> None:
    numbers = {"RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": ranks, "MASTER_PORT": 29511}
    os.environ.update({key: str(value) for key, value in numbers.items()}, TORCHELASTIC_RUN_ID=name)
    artifacts = _artifacts(ranks)
    wrong = 0
    for fault in faults:
        kernels = _Kernels(artifacts)
        if not kernels.right():
            say(f"{fault}: rank {rank}: WRONG results on a new mesh")
            wrong += 1
        kernels.mesh.synchronize()
        assert kernels.mesh.group is not None
        kernels.mesh.group.agree(f"is ready for {fault}")
        if fault != "killed":
            kernels.mesh.alarm.limit = LIMIT
        wrong += not _raises(kernels, fault)
    sys.exit(wrong)


def _raises(kernels: _Kernels, fault: str) -> bool:
    """Whether this rank raises what it should; its mesh is closed."""
    mesh, last = kernels.mesh, kernels.rank == kernels.ranks - 1
    began = time.monotonic()
    others: Callable[[], None] = kernels.gather if fault == "engines" else kernels.gemm
    try:
        if last:
            _misbehave(kernels, fault)
        else:
            others()
        if fault == "unasked":
            while time.monotonic() - began < PATIENCE:
                time.sleep(0.01)
        while time.monotonic() - began < PATIENCE:
            mesh.synchronize(2 * PATIENCE)
            time.sleep(0.01)
    except PkcError as error:
        taken = time.monotonic() - began
        lines = [line.strip() for line in str(error).splitlines()]
        notes = [line for line in lines if "rank " in line]
        say(f"{fault}: rank {kernels.rank}: after {taken:.2f} s", *notes)
        closing = time.monotonic()
        mesh.close()
        say(f"    closed in {time.monotonic() - closing:.2f} s")
        return taken < LIMIT + 5
    say(f"{fault}: rank {kernels.rank}: NOTHING was raised")
    return False


def _misbehave(kernels: _Kernels, fault: str) -> None:
    if fault == "kernel":
        kernels.sums()
    elif fault == "shape":
        kernels.small_gemm()
    elif fault == "failed":
        kernels.fails()
    elif fault == "killed":
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
