"""The runtime on real GPUs: `python -m tests.gpu.smoke_runtime`.

Prints a line for each check; the exit status is 1 if one fails. Needs one GPU of compute capability 9.0, and uses all
there are: virtual ranks on the first one, one process for all GPUs, one process for each GPU. Every kind of mesh runs
in separate processes, with a time limit. torch is used if it is installed. `--kind shared:2` has two processes on the
first GPU, where their kernels take turns.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pkc.diagnostics import PkcError
from pkc.runtime import group as groups
from pkc.runtime.arrays import Array
from pkc.runtime.copies import download, upload
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from tests.gpu import present, smoke_kernels
from tests.gpu.smoke_kernels import TILE

ROOT = Path(__file__).parents[2]
LIMIT = 120
REPLAYS = 1000
ROWS = 8 * 132 * TILE + 24
"""Several tiles for each CTA, the last one shorter."""


class Failure(Exception):
    """A check that found something wrong."""


def content(rank: int, rows: int) -> np.ndarray[Any, Any]:
    """Small integers, other ones on each rank."""
    row, column = np.indices((rows, TILE))
    return ((row * 7 + column + rank * 31) % 128).astype(np.float32)


class Exchange:
    """The arrays of `pass_on` on a mesh, and the expected result."""

    def __init__(self, mesh: Mesh, rows: int = ROWS) -> None:
        self.mesh, self.rows = mesh, rows
        self.kernel = LoadedKernel(smoke_kernels.pass_on(), mesh)
        self.x, self.z = mesh.empty((rows, TILE), "bf16"), mesh.empty((rows, TILE), "f32", "private")
        for rank in mesh.local:
            upload(mesh, self.x, rank.rank, content(rank.rank, rows))
        self.poison()

    def launch(self, scale: float, stream: Any = None) -> None:
        self.kernel({"X": self.x, "Z": self.z, "scale": scale}, stream=stream)

    def poison(self) -> None:
        for rank in self.mesh.local:
            upload(self.mesh, self.z, rank.rank, np.full((self.rows, TILE), np.nan, np.float32))
        together(self.mesh, "has written its input")

    def check(self, scale: float) -> None:
        for rank in self.mesh.local:
            expected = scale * content((rank.rank - 1) % self.mesh.ranks, self.rows)
            compare(self.mesh, self.z, rank.rank, expected)


def together(mesh: Mesh, what: str) -> None:
    """Wait for the other processes, if there are any."""
    if mesh.group is not None:
        mesh.group.agree(what)


def compare(mesh: Mesh, array: Array, rank: int, expected: np.ndarray[Any, Any]) -> None:
    found = download(mesh, array, rank).astype(np.float32)
    wrong = np.argwhere(found != expected)
    if len(wrong):
        at = tuple(map(int, wrong[0]))
        raise Failure(f"rank {rank}: {len(wrong)} of {found.size} differ; {at}: {found[at]}, not {expected[at]}")


# Checks


def exchange(mesh: Mesh) -> None:
    """Peer loads and stores by tensor maps with the rank as outermost dimension; signals; ragged tiles."""
    for rows in (ROWS, 1, TILE, 1000):
        work = Exchange(mesh, rows)
        work.launch(2)
        mesh.synchronize()
        work.check(2)


def repeated(mesh: Mesh) -> None:
    """Launches one after the other, without waiting in between: epochs and counters that are never reset."""
    work = Exchange(mesh)
    for number in range(1, 201):
        work.launch(number % 2 + 1)
    mesh.synchronize()
    work.check(1)


def shards(mesh: Mesh) -> None:
    """The two maps of a split dimension: of a sharded array, and of a private one."""
    for rows in (4096, 1000, 67, 1):
        z = mesh.empty((rows, TILE), "f32", "private")
        for private in (False, True):
            kernel = LoadedKernel(smoke_kernels.collect(private=private), mesh)
            layout = ("private", None) if private else ("shard", 0)
            a = mesh.empty((rows, TILE), "bf16", *layout)
            length = a.memory_shape[0]
            for rank in mesh.local:
                values = content(0, rows)[0 if private else rank.rank * length :][: a.local(rank.rank).shape[0]]
                upload(mesh, a, rank.rank, values)
                upload(mesh, z, rank.rank, np.full((rows, TILE), np.nan, np.float32))
            together(mesh, "has written its shard")
            kernel({"A": a, "Z": z})
            mesh.synchronize()
            for rank in mesh.local:
                compare(mesh, z, rank.rank, content(0, rows))
            together(mesh, "has read all shards")


def graph(mesh: Mesh) -> None:
    """A launch captured from one stream, replayed many times."""
    driver, first = mesh.driver, mesh.local[0]
    work = Exchange(mesh)
    work.launch(1)
    mesh.synchronize()
    with mesh.current(first):
        stream = int(driver.cuStreamCreate(int(driver.api.CUstream_flags.CU_STREAM_NON_BLOCKING)))
        mode = driver.api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        driver.cuStreamBeginCapture(stream, mode)
        work.launch(2, stream)
        captured = driver.cuGraphInstantiate(driver.cuStreamEndCapture(stream), 0)
    work.poison()
    with mesh.current(first):
        for _ in range(REPLAYS):
            driver.cuGraphLaunch(captured, stream)
    mesh.synchronize(stream=stream)
    work.check(2)
    # Counters go on from launches and replays.
    work.launch(1)
    mesh.synchronize()
    work.check(1)


def streams(mesh: Mesh) -> None:
    """The caller's streams: one for each rank, and one for all."""
    work = Exchange(mesh)
    given: list[int] = []
    for rank in mesh.local:
        with mesh.current(rank):
            given.append(int(mesh.driver.cuStreamCreate(int(mesh.driver.api.CUstream_flags.CU_STREAM_NON_BLOCKING))))
    work.launch(2, given)
    mesh.synchronize(stream=given)
    work.check(2)
    work.poison()
    work.launch(1, given[0])
    mesh.synchronize(stream=given[0])
    work.check(1)


def torch_views(mesh: Mesh) -> None:
    """Arrays of the mesh as tensors, and tensors as private arrays."""
    import torch

    from pkc.runtime.torch import tensor

    for dtype in ("bf16", "f16", "f32", "i32", "i8", "e4m3", "e5m2"):
        array = mesh.empty((5, 16), dtype, "shard", 0)
        for rank in mesh.local:
            view = array.local(rank.rank)
            if 0 in view.shape:
                continue
            seen = tensor(view)
            if (seen.data_ptr(), tuple(seen.shape), seen.device.index) != (view.address, view.shape, rank.device):
                raise Failure(f"{dtype}: {view} is seen as {seen.data_ptr():#x}, {seen.shape}, {seen.device}")
            seen.copy_(torch.full(view.shape, 3.0, device=seen.device).to(seen.dtype))
            torch.cuda.synchronize(rank.device)
            if not (download(mesh, array, rank.rank).astype(np.float32) == 3).all():
                raise Failure(f"{dtype}: what torch writes does not arrive")
    work = Exchange(mesh)
    tensors = [torch.full((ROWS, TILE), float("nan"), device=f"cuda:{rank.device}") for rank in mesh.local]
    for rank in mesh.local:
        torch.cuda.synchronize(rank.device)
    work.kernel({"X": work.x, "Z": tensors, "scale": 2})
    mesh.synchronize()
    for rank, found in zip(mesh.local, tensors, strict=True):
        expected = torch.from_numpy(2 * content((rank.rank - 1) % mesh.ranks, ROWS))
        if not torch.equal(found.cpu(), expected):
            raise Failure(f"rank {rank.rank}: a torch tensor differs from what the kernel wrote")


def launch_cost(mesh: Mesh) -> str:
    """How long a prepared launch takes on the host."""
    work = Exchange(mesh, 1)
    work.launch(1)
    mesh.synchronize()
    together(mesh, "begins to measure")
    started = time.perf_counter()
    for _ in range(100):
        work.launch(1)
    passed = time.perf_counter() - started
    mesh.synchronize()
    return f"{passed * 1e4:.1f} us per launch on {len(mesh.local)} ranks"


def heap_grows(mesh: Mesh) -> None:
    """The heap grows and shrinks while older arrays stay in place."""
    work = Exchange(mesh)
    for _ in range(2):
        for array in [mesh.empty((100 << 20,), "bf16") for _ in range(3)]:
            array.free()
        if mesh.trim() < 256 << 20:
            raise Failure("no memory is given back")
    work.launch(2)
    mesh.synchronize()
    work.check(2)
    again = Exchange(mesh)
    again.launch(2)
    mesh.synchronize()
    again.check(2)


def hang(mesh: Mesh) -> str:
    """A kernel that does not end is reported, by rank."""
    kernel = LoadedKernel(smoke_kernels.stall(), mesh, grid=1)
    kernel({"seconds": 0})
    mesh.synchronize()
    kernel({"seconds": 4})
    codes = [_refused(mesh, timeout) for timeout in (1, 30)]
    if codes != ["PK836", "PK838"]:
        raise Failure(f"reported as {codes}, not as a kernel that does not end, of a mesh that has given up")
    return "reported after 1 s"


def _refused(mesh: Mesh, timeout: float) -> str:
    """The code of the error that synchronising ends with."""
    try:
        mesh.synchronize(timeout=timeout)
    except PkcError as error:
        return error.diagnostics[0].code
    raise Failure("a kernel of 4 s was done, and nobody had given up")


CHECKS: Sequence[Callable[[Mesh], str | None]] = (
    exchange, repeated, shards, streams, graph, heap_grows, torch_views, launch_cost, hang,
)  # fmt: skip


# One kind of mesh, in this process


def make_mesh(kind: str) -> Mesh:
    if kind == "processes":
        return Mesh.from_torchrun()
    if kind == "single":
        return Mesh.single_process()
    if kind.startswith("shared:"):
        job = replace(groups.job(), local_rank=0)
        return Mesh.of_job(job, [0] * job.ranks)
    return Mesh.virtual(int(kind.removeprefix("virtual:")))


def run_checks(kind: str, only: str | None) -> bool:
    """Run the checks on one kind of mesh; the process must then end, as a kernel that hangs leaves it unusable."""
    mesh = make_mesh(kind)
    leading = mesh.group is None or mesh.group.rank == 0
    for check in CHECKS:
        if only is not None and check.__name__ != only:
            continue
        if check is torch_views and importlib.util.find_spec("torch") is None:
            _print(leading, kind, mesh, check, "left out: no torch", 0)
            continue
        started = time.perf_counter()
        try:
            told = check(mesh)
        except (PkcError, Failure) as error:
            _print(True, kind, mesh, check, f"FAILED: {error}", time.perf_counter() - started)
            return False
        _print(leading, kind, mesh, check, told or "ok", time.perf_counter() - started)
    mesh.close()
    return True


def _print(shown: bool, kind: str, mesh: Mesh, check: Callable[..., Any], text: str, seconds: float) -> None:
    if shown:
        # Several processes write here: one write for each line.
        sys.stdout.write(f"{kind:12} {mesh.ranks:2} ranks  {check.__name__:12} {seconds:7.2f} s  {text}\n")
        sys.stdout.flush()


# All kinds, each in separate processes


def run_kind(kind: str, arguments: Sequence[str], processes: int) -> bool:
    """Run one kind of mesh in other processes; whether all went well in time."""
    command = [sys.executable, "-m", "tests.gpu.smoke_runtime", "--here", kind, *arguments]
    job = {"MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": uuid.uuid4().hex}
    job |= dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), str(processes))
    running = [
        subprocess.Popen(command, cwd=ROOT, env=os.environ | job | {"RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(processes)
    ]
    deadline = time.monotonic() + LIMIT
    try:
        # Wait for all, also if one has failed.
        statuses = [process.wait(max(deadline - time.monotonic(), 1)) for process in running]
        return not any(statuses)
    except subprocess.TimeoutExpired:
        print(f"{kind:12} FAILED: not done after {LIMIT} s", flush=True)
        return False
    finally:
        for process in running:
            process.kill()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", action="append", metavar="KIND", help="single, processes, virtual:N or shared:N")
    parser.add_argument("--only", metavar="CHECK", choices=[check.__name__ for check in CHECKS])
    parser.add_argument("--here", metavar="KIND", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.here is not None:
        good = run_checks(options.here, options.only)
        sys.stdout.flush()
        os._exit(not good)
    found = present.gpus()
    kinds = options.kind or ["virtual:1", "virtual:2", "virtual:3", "virtual:8", "single", "processes"]
    rest = [] if options.only is None else ["--only", options.only]
    counts = [int(kind[7:]) if kind.startswith("shared:") else found if kind == "processes" else 1 for kind in kinds]
    results = [run_kind(kind, rest, count) for kind, count in zip(kinds, counts, strict=True)]
    print(f"{sum(results)} of {len(results)} kinds of mesh are right, on {found} GPUs")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
