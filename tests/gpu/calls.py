"""Kernels called from Python with torch tensors, against torch in float64:

    python -m tests.gpu.calls --ranks 2

runs everything in one process that drives all GPUs, then in one process for each GPU, under torchrun. Every kind has a
time limit, and prints a line for each check; the exit status is that of a test.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pkc
from pkc import Kernel
from pkc.diagnostics import PkcError
from pkc.runtime.arrays import Array
from pkc.runtime.mesh import Mesh
from tests.gpu import present, processes

EXAMPLES = processes.ROOT / "examples"
LIMIT = 150
CALLS = 200
SIZES = ((1024, 512, 256), (1000, 520, 200))
"""M, N and K of each rank: divisible, and ragged as far as TMA allows."""

_ROUNDING = 1.01 * 2.0**-8
"""The relative error of rounding to bf16, which has 8 significant bits, and a little for the error before it."""
_ADDING = 2.0**-23
"""The relative error of each addition in the tensor core, which may truncate."""


class Failure(Exception):
    """A check that found something wrong."""


@dataclass(frozen=True)
class Gpus:
    """The ranks of this process, and private arrays on them."""

    mesh: Mesh
    torch: Any

    def draw(self, seed: int, *shape: int) -> Any:
        """A private array of random numbers, which differ on every rank of every process."""
        return self.given([self.of_rank(seed, rank.rank, rank.device, *shape) for rank in self.mesh.local])

    def of_rank(self, seed: int, rank: int, device: int, *shape: int) -> Any:
        """The numbers of any rank, on a local GPU: the generator runs on the host, the same in all processes."""
        generator = self.torch.Generator().manual_seed(1000 * seed + rank)
        drawn = self.torch.randn(*shape, generator=generator)
        return drawn.to(self.torch.bfloat16).to(f"cuda:{device}")

    def empty(self, *shape: int) -> Any:
        """A private array of NaN."""
        tensors = [self.torch.full(shape, float("nan"), device=f"cuda:{rank.device}") for rank in self.mesh.local]
        return self.given([tensor.to(self.torch.bfloat16) for tensor in tensors])

    def given(self, tensors: list[Any]) -> Any:
        """The argument of a kernel: a list only if there are several ranks."""
        return tensors if len(tensors) > 1 else tensors[0]

    def tensors(self, array: Any) -> list[Any]:
        """A tensor for each rank of this process."""
        if isinstance(array, Array):
            return [array.tensor(rank.rank) for rank in self.mesh.local]
        return array if isinstance(array, list) else [array]

    def fill(self, array: Array, seed: int) -> None:
        """Draw a sharded array."""
        for rank, tensor in zip(self.mesh.local, self.tensors(array), strict=True):
            tensor.copy_(self.of_rank(seed, rank.rank, rank.device, *tensor.shape))

    def poison(self, array: Any) -> None:
        for tensor in self.tensors(array):
            tensor.fill_(float("nan"))


class GemmRs:
    """C = sum over ranks of A @ B; each rank has a shard of its rows."""

    def __init__(self, gpus: Gpus, m: int, n: int, k: int, seed: int = 1) -> None:
        self.gpus, self.shape, self.seed = gpus, (m, n, k), seed
        self.a, self.b = gpus.draw(seed, m, k), gpus.draw(seed + 1, k, n)
        self.c = gemm_rs.empty("C", gpus.mesh, M=m, N=n)
        gpus.poison(self.c)

    def call(self, kernel: Kernel | None = None, **options: Any) -> None:
        (kernel or gemm_rs)(self.a, self.b, self.c, **options)

    def check(self) -> float:
        """The largest error, in units of the bound."""
        m, n, k = self.shape
        gpus, worst = self.gpus, 0.0
        for rank, found in zip(gpus.mesh.local, gpus.tensors(self.c), strict=True):
            first = rank.rank * -(-m // gpus.mesh.ranks)
            total = bound = 0.0
            for other in range(gpus.mesh.ranks):
                left = gpus.of_rank(self.seed, other, rank.device, m, k)[first : first + found.shape[0]]
                exact, error = matmul(left, gpus.of_rank(self.seed + 1, other, rank.device, k, n))
                # Each contribution is rounded once, and so is each sum of them.
                bound += (gpus.mesh.ranks + 1) * _ROUNDING * exact.abs() + error
                total += exact
            worst = max(worst, compared(found, total, bound))
        return worst


def matmul(left: Any, right: Any) -> tuple[Any, Any]:
    """The matmul in float64, and the error that it may have in a tensor core."""
    left, right = left.double(), right.double()
    return left @ right, left.shape[1] * _ADDING * (left.abs() @ right.abs())


def compared(found: Any, expected: Any, bound: Any) -> float:
    """The largest error, in units of the bound; NaN counts as wrong."""
    ratio = ((found.double() - expected).abs() / bound).max().item()
    if not ratio <= 1:
        raise Failure(f"error/bound {ratio:.3g}")
    return ratio


gemm_rs, ag_gemm, gemm, ring_attention = (
    pkc.load(EXAMPLES / f"{name}.pk") for name in ("gemm_rs", "ag_gemm", "gemm", "ring_attention")
)


# Checks: each returns the text to print


def private(gpus: Gpus) -> str:
    """Tensors alone: the ranks are the GPUs of the tensors."""
    worst = 0.0
    for m, n, k in SIZES:
        a, b, c = gpus.draw(1, m, k), gpus.draw(2, k, n), gpus.empty(m, n)
        gemm(a, b, C=c)
        for left, right, found in zip(*map(gpus.tensors, (a, b, c)), strict=True):
            expected, error = matmul(left, right)
            worst = max(worst, compared(found, expected, _ROUNDING * expected.abs() + error))
    return f"error/bound {worst:.3f}"


def reduced(gpus: Gpus) -> str:
    """GEMM + reduce-scatter, from a file, with two schedules."""
    worst = 0.0
    for size in SIZES:
        work = GemmRs(gpus, *size)
        for kernel in (gemm_rs, gemm_rs.with_schedule(overlap="inter_sm")):
            gpus.poison(work.c)
            work.call(kernel)
            worst = max(worst, work.check())
        work.c.free()
    return f"error/bound {worst:.3f}"


def gathered(gpus: Gpus) -> str:
    """All-gather + GEMM: an operand that torch writes into an array of the mesh."""
    worst = 0.0
    for m, n, k in SIZES:
        a, b, c = ag_gemm.empty("A", gpus.mesh, M=m, K=k), gpus.draw(3, k, n), gpus.empty(m, n)
        gpus.fill(a, 4)
        ag_gemm(a, b, c)
        length = a.memory_shape[0]
        for rank, right, found in zip(gpus.mesh.local, gpus.tensors(b), gpus.tensors(c), strict=True):
            rows = [max(0, min(length, m - other * length)) for other in range(gpus.mesh.ranks)]
            left = [gpus.of_rank(4, other, rank.device, count, k) for other, count in enumerate(rows)]
            expected, error = matmul(gpus.torch.cat(left), right)
            worst = max(worst, compared(found, expected, _ROUNDING * expected.abs() + error))
        a.free()
    return f"error/bound {worst:.3f}"


def zigzag(gpus: Gpus) -> str:
    """Causal attention over shards in zigzag order: torch scatters whole operands, and gathers the result."""
    torch, first, worst = gpus.torch, gpus.mesh.local[0], 0.0
    for length in (1024, 333):
        sizes = {"B": 1, "H": 2, "S": length}
        names, scale = "QKVO", 0.125
        arrays = [ring_attention.empty(name, gpus.mesh, zigzag=True, **sizes) for name in names]
        whole = [gpus.of_rank(seed, 0, first.device, *arrays[0].shape) for seed in (5, 6, 7)]
        for array, content in zip(arrays, whole, strict=False):
            gpus.poison(array)
            array.scatter(content)
        gpus.poison(arrays[-1])
        ring_attention(*arrays, scale, causal=True, zigzag=True)
        expected, bound = attention(torch, *(tensor.double() for tensor in whole), scale)
        for rank, found in zip(gpus.mesh.local, gpus.tensors(arrays[-1]), strict=True):
            for there, here in arrays[-1].ranges(rank.rank):
                if found[here].numel():
                    on_rank = (tensor[there].to(found.device) for tensor in (expected, bound))
                    worst = max(worst, compared(found[here], *on_rank))
        if gpus.mesh.group is None:
            worst = max(worst, compared(arrays[-1].gather(), expected, bound))
        for array in arrays:
            array.free()
    return f"error/bound {worst:.3f}"


def attention(torch: Any, q: Any, k: Any, v: Any, scale: float) -> tuple[Any, Any]:
    """Causal attention with powers of two, in float64, and the error that bf16 and a tensor core may add to it."""
    scores = (q @ k.transpose(-1, -2)) * scale
    future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    p = torch.exp2(
        (scores - scores.masked_fill(future, -torch.inf).amax(-1, keepdim=True)).masked_fill(future, -torch.inf)
    )
    total = p.sum(-1, keepdim=True)
    exact, size = p @ v / total, p @ v.abs() / total
    # Of each exponential: that of its score, of the exponential itself, of the factors that follow, and of the sum.
    largest = (q.abs() @ k.abs().transpose(-1, -2)).max().item() * abs(scale)
    each = 2 * q.shape[-1] * _ADDING * largest + 2 * q.shape[-2] * 8 * _ADDING
    return exact, (_ROUNDING + 2 * each) * size + _ROUNDING * exact.abs()


def in_order(gpus: Gpus) -> str:
    """Torch writes the operands late, and reads the result at once: all on its current streams."""
    work = GemmRs(gpus, *SIZES[0])
    work.call()
    right = [[tensor.clone() for tensor in gpus.tensors(array)] for array in (work.a, work.b)]
    for _ in range(10):
        for array, kept in zip((work.a, work.b), right, strict=True):
            for tensor, content in zip(gpus.tensors(array), kept, strict=True):
                tensor.fill_(float("nan"))
                with gpus.torch.cuda.device(tensor.device):
                    gpus.torch.cuda._sleep(2_000_000)
                tensor.copy_(content)
        gpus.poison(work.c)
        work.call()
    return f"error/bound {work.check():.3f}"


def graph(gpus: Gpus) -> str:
    """A call that is captured into a CUDA graph by torch, and replayed with calls in between."""
    torch, first = gpus.torch, gpus.mesh.local[0]
    work = GemmRs(gpus, *SIZES[0])
    work.call()
    synchronize(gpus)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.device(first.device), torch.cuda.graph(captured):
        work.call()
    gpus.poison(work.c)
    synchronize(gpus)
    for _ in range(100):
        captured.replay()
    synchronize(gpus)
    worst = work.check()
    gpus.poison(work.c)
    synchronize(gpus)
    work.call()
    # A graph of several GPUs waits for the first one's stream alone.
    synchronize(gpus)
    captured.replay()
    synchronize(gpus)
    return f"error/bound {max(worst, work.check()):.3f}, 102 launches"


def given_streams(gpus: Gpus) -> str:
    """`stream=`: torch streams, one for each rank."""
    torch = gpus.torch
    work = GemmRs(gpus, *SIZES[0])
    synchronize(gpus)
    streams = [torch.cuda.Stream(device=rank.device) for rank in gpus.mesh.local]
    work.call(stream=streams)
    for stream in streams:
        stream.synchronize()
    return f"error/bound {work.check():.3f}"


def cost(gpus: Gpus) -> str:
    """How long a call takes on the host."""
    work = GemmRs(gpus, 128, 256, 64)
    work.call()
    synchronize(gpus)
    times: list[float] = []
    for _ in range(CALLS):
        started = time.perf_counter()
        work.call()
        times.append(time.perf_counter() - started)
    synchronize(gpus)
    work.check()
    return f"{sorted(times)[CALLS // 2] * 1e6:.1f} us for a call on {len(gpus.mesh.local)} ranks"


def refused(gpus: Gpus) -> str:
    """A tensor of the host, with the line of the call."""
    work = GemmRs(gpus, *SIZES[0])
    on_host = gpus.given([tensor.cpu() for tensor in gpus.tensors(work.a)])
    try:
        gemm_rs(on_host, work.b, work.c)
    except PkcError as error:
        text = str(error)
        if "PK846" in text and "gemm_rs(on_host, work.b, work.c)" in text:
            return "PK846"
        raise Failure(text) from None
    raise Failure("it is launched")


CHECKS: Sequence[Callable[[Gpus], str]] = (
    private,
    reduced,
    gathered,
    zigzag,
    in_order,
    given_streams,
    graph,
    cost,
    refused,
)


def synchronize(gpus: Gpus) -> None:
    """Wait for the GPUs of this process, and then for the other processes."""
    for rank in gpus.mesh.local:
        gpus.torch.cuda.synchronize(rank.device)
    if gpus.mesh.group is not None:
        gpus.mesh.group.agree("goes on")


# One kind, in this process


def run_checks(kind: str, ranks: int) -> bool:
    import torch

    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    mesh = pkc.mesh()
    if mesh.ranks != ranks:
        raise Failure(f"the mesh has {mesh.ranks} ranks, not {ranks}")
    gpus = Gpus(mesh, torch)
    leading = mesh.group is None or mesh.group.rank == 0
    for check in CHECKS:
        started = time.perf_counter()
        try:
            told, right = check(gpus), True
            synchronize(gpus)
        except (PkcError, Failure) as error:
            told, right = f"FAILED: {error}", False
        if leading or not right:
            where = "" if mesh.group is None else f" (rank {mesh.group.rank})" * (not right)
            passed = time.perf_counter() - started
            sys.stdout.write(f"{kind:9} {mesh.ranks} ranks  {check.__name__:10} {passed:6.2f} s  {told}{where}\n")
            sys.stdout.flush()
        if not right:
            return False
    mesh.close()
    return True


# Both kinds, each in separate processes


def run_kind(kind: str, ranks: int) -> bool:
    """Run one kind in other processes; whether all went well in time."""
    arguments = ["--here", kind, "--ranks", str(ranks)]
    return processes.run("tests.gpu.calls", arguments, ranks, LIMIT, torchrun=kind == "torchrun")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, help="all GPUs, if it is not given")
    parser.add_argument("--kind", choices=["single", "torchrun"], help="this one alone")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.here is not None:
        try:
            right = run_checks(given.here, given.ranks)
        except (PkcError, Failure) as error:
            print(error, flush=True)
            right = False
        sys.stdout.flush()
        # A kernel that hangs would keep the interpreter from ending.
        os._exit(not right)
    ranks = present.gpus(given.ranks)
    kinds = [given.kind] if given.kind else ["single", "torchrun"]
    right = [run_kind(kind, ranks) for kind in kinds]
    print(f"{sum(right)} of {len(right)} kinds of processes are right, on {ranks} GPUs")
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
