"""What one would run instead of pkc, and how times are taken. Needs torch and no other module of pkc, so it runs alone:

    torchrun --nproc-per-node 8 pkc/bench/peers.py --collective reduce_scatter --sizes 4096,8192 --json peers.json

A repetition of a contestant is: block the stream until the host has enqueued everything, overwrite the L2 cache, let
the ranks meet in an all-reduce of one number, then the measured calls between two CUDA events. Contestants run
round-robin within a repetition, so that all see the same clocks. The time of a repetition is that of its slowest rank.
"""

from __future__ import annotations

import argparse
import functools
import gc
import importlib
import json
import math
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

Collective: TypeAlias = Literal["none", "reduce_scatter", "all_gather"]

NO_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
"""The environment in which no library uses NVLink multicast; set before torch is imported, and children inherit it."""

FLUSH_BYTES = 256 << 20
"""Written before each repetition: several times the L2 cache of any GPU so far."""
HOLD_CYCLES = 4_000_000
"""About 2 ms, longer than the host needs to enqueue any contestant."""
TIMEOUT = 120.0
"""Seconds after which GPUs that have not finished count as hung."""
LONGEST = 300
"""Characters kept of the message of a contestant that fails."""
SAMPLED_ROWS = 8
UNIT = 2.0**-8
"""The largest relative error of rounding to bf16."""


class Wrong(Exception):
    """The result of a contestant differs from the reference by more than the bound."""


class Hung(Exception):
    """The GPUs do not finish; this process can only end."""


class Refused(Exception):
    """A contestant cannot run with these sizes, or must not run on this machine."""


@functools.cache
def torch() -> Any:
    """The module torch, imported in an environment without NVLink multicast."""
    os.environ.update(NO_MULTICAST)
    return importlib.import_module("torch")


def dist() -> Any:
    return torch().distributed


# The ranks


@dataclass(frozen=True)
class Job:
    """This process: its rank, how many there are, its GPU."""

    rank: int
    ranks: int
    device: int

    def largest(self, values: Any) -> Any:
        """The element-wise largest of a tensor over all ranks."""
        if self.ranks > 1:
            dist().all_reduce(values, op=dist().ReduceOp.MAX)
        return values

    def total(self, values: Any) -> Any:
        """The element-wise sum of a tensor over all ranks."""
        if self.ranks > 1:
            dist().all_reduce(values)
        return values

    def any(self, problem: bool) -> bool:
        """Whether some rank has a problem."""
        return bool(self.largest(torch().tensor([float(problem)], device="cuda")).item())

    def leave(self) -> None:
        """End the process group, once all ranks have called this."""
        if self.ranks > 1:
            dist().destroy_process_group()


def join(environment: Mapping[str, str] = os.environ) -> Job:
    """Join the job that `torchrun` started, or be alone on the first GPU."""
    rank, ranks, local = (int(environment.get(name, default)) for name, default in _TORCHRUN)
    torch().cuda.set_device(local)
    if ranks > 1:
        device = torch().device("cuda", local)
        dist().init_process_group("nccl", device_id=device, timeout=timedelta(seconds=2 * TIMEOUT))
    return Job(rank, ranks, local)


_TORCHRUN = (("RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_RANK", "0"))


# Problems and their inputs


@dataclass(frozen=True)
class Problem:
    """C[m, n] = A[m, k] @ B[k, n] by all ranks together; without a collective, by each rank alone.

    reduce_scatter: a rank has columns of A and rows of B, and ends with rows of C. all_gather: a rank has rows of A
    and columns of B, and ends with columns of C. Shards of rows have ceil(m / ranks) rows; k and n are divided evenly.
    """

    collective: Collective
    m: int
    n: int
    k: int
    ranks: int

    @property
    def local_n(self) -> int:
        return self.n // self.ranks if self.collective == "all_gather" else self.n

    @property
    def local_k(self) -> int:
        return self.k // self.ranks if self.collective == "reduce_scatter" else self.k

    @property
    def shard(self) -> int:
        """The number of rows of the longest shard."""
        return -(-self.m // self.ranks)

    def owned(self, rank: int) -> int:
        """How many rows a rank owns: of C if it is scattered, of A if it is gathered."""
        return max(0, min(self.m - rank * self.shard, self.shard))

    @property
    def flops(self) -> float:
        """Floating-point operations of each rank: additions and multiplications."""
        return 2.0 * self.m * self.local_n * self.local_k

    @property
    def link_bytes(self) -> int:
        """Bytes that each rank must send or receive, in bf16: a shard of C from, or of A to, each other rank."""
        widths = {"none": 0, "reduce_scatter": self.n, "all_gather": self.k}
        return 2 * (self.ranks - 1) * self.shard * widths[self.collective]


@dataclass(frozen=True)
class Inputs:
    """bf16 matrices on this rank. `a` has `shard` rows if A is gathered; those beyond the rank's shard are zero."""

    a: Any
    b: Any


def draw(problem: Problem, job: Job) -> Inputs:
    """Normally distributed inputs: the values decide how much power the MMAs take, hence the clock."""
    rows = problem.shard if problem.collective == "all_gather" else problem.m
    generator = torch().Generator(device=f"cuda:{job.device}").manual_seed(job.rank)
    options = {"device": "cuda", "dtype": torch().bfloat16}
    a = torch().randn((rows, problem.local_k), generator=generator, **options)
    if problem.collective == "all_gather":
        a[problem.owned(job.rank) :] = 0
    return Inputs(a, torch().randn((problem.local_k, problem.local_n), generator=generator, **options))


# Contestants


@dataclass(frozen=True)
class Contestant:
    """`run` enqueues on the current stream and returns the local shard of C."""

    name: str
    run: Callable[[], Any]


def peers(problem: Problem, inputs: Inputs, job: Job) -> Iterator[Contestant]:
    """The alternatives to pkc for this problem."""
    if problem.collective == "none" or job.ranks == 1:
        yield Contestant("cublas", _matmul(inputs.a, inputs.b, problem.m))
    elif problem.collective == "reduce_scatter":
        yield Contestant("cublas_nccl", _matmul_then_scatter(problem, inputs, job))
        yield Contestant("torch_fused", _fused_scatter(problem, inputs))
    else:
        yield Contestant("cublas_nccl", _gather_then_matmul(problem, inputs))
        yield Contestant("torch_fused", _fused_gather(problem, inputs))


def gemm_alone(problem: Problem) -> Problem:
    """The matmul that each rank does, without communication."""
    return Problem("none", problem.m, problem.local_n, problem.local_k, problem.ranks)


def _empty(*shape: int) -> Any:
    return torch().zeros(shape, device="cuda", dtype=torch().bfloat16)


def _matmul(a: Any, b: Any, rows: int) -> Callable[[], Any]:
    left, out = a[:rows], _empty(rows, b.shape[1])

    def run() -> Any:
        torch().matmul(left, b, out=out)
        return out

    return run


def _matmul_then_scatter(problem: Problem, inputs: Inputs, job: Job) -> Callable[[], Any]:
    # NCCL scatters equal shards: rows beyond m are padding.
    padded, local = _empty(job.ranks * problem.shard, problem.n), _empty(problem.shard, problem.n)
    partial, result = padded[: problem.m], local[: problem.owned(job.rank)]

    def run() -> Any:
        torch().matmul(inputs.a, inputs.b, out=partial)
        dist().reduce_scatter_tensor(local, padded)
        return result

    return run


def _gather_then_matmul(problem: Problem, inputs: Inputs) -> Callable[[], Any]:
    gathered = _empty(problem.ranks * problem.shard, problem.k)
    multiply = _matmul(gathered, inputs.b, problem.m)

    def run() -> Any:
        dist().all_gather_into_tensor(gathered, inputs.a)
        return multiply()

    return run


def _fused_scatter(problem: Problem, inputs: Inputs) -> Callable[[], Any]:
    group = functools.cache(lambda: _symmetric_group(problem))

    def run() -> Any:
        name = group()
        return torch().ops.symm_mem.fused_matmul_reduce_scatter(inputs.a, inputs.b, "sum", 0, name)

    return run


def _fused_gather(problem: Problem, inputs: Inputs) -> Callable[[], Any]:
    group = functools.cache(lambda: _symmetric_group(problem))

    def run() -> Any:
        name = group()
        # A is returned too, which is the default: without it torch may use multicast where there is some.
        _, (out,) = torch().ops.symm_mem.fused_all_gather_matmul(inputs.a, [inputs.b], 0, name)
        return out

    return run


def _symmetric_group(problem: Problem) -> str:
    """The name of the group of all ranks. Raises `Refused`. Importing the module is what defines its operators."""
    if problem.m % problem.ranks:
        raise Refused(f"torch splits rows evenly: {problem.m} over {problem.ranks} ranks")
    missing = [name for name, value in NO_MULTICAST.items() if os.environ.get(name) != value]
    if missing:
        raise Refused(f"torch's symmetric memory might use NVLink multicast: {', '.join(missing)} not set")
    symmetric = importlib.import_module("torch.distributed._symmetric_memory")
    kind = importlib.import_module("torch._C._autograd").DeviceType.CUDA
    if symmetric._SymmetricMemory.has_multicast_support(kind, torch().cuda.current_device()):
        raise Refused("torch reports NVLink multicast although the environment forbids it")
    name = dist().group.WORLD.group_name
    with warnings.catch_warnings():
        # Newer versions say that this is not needed any more; older ones need it.
        warnings.simplefilter("ignore")
        symmetric.enable_symm_mem_for_group(name)
    return name


# Correctness


class Reference:
    """Some rows of the local shard of C in float64, and how far a result may be from them.

    A result rounds to bf16 at most once for each rank's addend and once at the end, and accumulates in float32, for
    which 2^-10 of the root mean square of C is allowed. As a whole, the relative error must be below
    2^-8 sqrt(ranks + 1): that is what tells a few wrong columns of A from roundings.
    """

    def __init__(self, problem: Problem, inputs: Inputs, job: Job) -> None:
        self._job = job
        scattered = problem.collective == "reduce_scatter"
        self.shape = (problem.owned(job.rank) if scattered else problem.m, problem.local_n)
        self.rows = [row for row in _sample(problem.shard if scattered else problem.m) if row < self.shape[0]]
        self._roundings = problem.ranks + 1 if scattered else 2
        left = _gathered(problem, inputs, job)
        right = inputs.b.double()
        if scattered:
            self.exact, self._size = self._scattered(problem, left, right)
        else:
            self.exact = left[self.rows].double() @ right
            self._size = self.exact.abs()

    def _scattered(self, problem: Problem, left: Any, right: Any) -> tuple[Any, Any]:
        """The sums of all ranks for the sampled rows that this rank owns, and the sums of their sizes."""
        sampled = _sample(problem.shard)
        # All ranks multiply the rows of all owners; one that nobody owns repeats the last.
        every = [min(rank * problem.shard + row, problem.m - 1) for rank in range(problem.ranks) for row in sampled]
        addends = left[every].double() @ right
        local = slice(self._job.rank * len(sampled), self._job.rank * len(sampled) + len(self.rows))
        return self._job.total(addends.clone())[local], self._job.total(addends.abs())[local]

    def check(self, result: Any) -> float:
        """The largest error over its bound, over all ranks. Raises `Wrong` on all ranks if it is above 1 on any."""
        worst = torch().tensor([self._worst(result)], device="cuda", dtype=torch().float64)
        found = float(self._job.largest(worst).item())
        if found > 1:
            raise Wrong(f"the result is wrong: {found:.3g} times the error bound")
        return found

    def _worst(self, result: Any) -> float:
        if tuple(result.shape) != self.shape:
            return math.inf
        if not self.rows:
            return 0.0
        error = (result[self.rows].double() - self.exact).abs()
        mean = self.exact.square().mean().sqrt()
        bound = self._roundings * UNIT * self._size + 2.0**-10 * mean
        overall = error.square().mean().sqrt() / mean / (UNIT * math.sqrt(self._roundings))
        worst = torch().maximum((error / bound).max(), overall)
        return math.inf if bool(worst.isnan()) else float(worst)


def _gathered(problem: Problem, inputs: Inputs, job: Job) -> Any:
    """This rank's A, or all of it if it is gathered."""
    if problem.collective != "all_gather" or job.ranks == 1:
        return inputs.a
    everything = _empty(job.ranks * problem.shard, problem.k)
    dist().all_gather_into_tensor(everything, inputs.a)
    return everything[: problem.m]


def _sample(rows: int) -> list[int]:
    """Some rows, the first and the last among them; no two in a row fall on the same place of a tile."""
    steps = min(SAMPLED_ROWS, rows) - 1
    return sorted({round(step * (rows - 1) / steps) for step in range(steps + 1)}) if steps else [0]


# Time


def finish(timeout: float = TIMEOUT) -> None:
    """Wait for all that is enqueued on the current stream, without waiting inside the driver. Raises `Hung`."""
    event = torch().cuda.Event()
    event.record()
    deadline = time.monotonic() + timeout
    while not event.query():
        if time.monotonic() > deadline:
            raise Hung(f"the GPU has not finished within {timeout:g} s")
        time.sleep(0.0002)


def measure(contestants: Sequence[Contestant], job: Job, *, repetitions: int, warmup: int) -> list[list[float]]:
    """Milliseconds of the slowest rank for each repetition of each contestant. Raises `Hung`."""
    flushed = torch().empty(FLUSH_BYTES, dtype=torch().uint8, device="cuda")
    meeting = torch().zeros(1, device="cuda")
    events = [[_pair() for _ in range(repetitions)] for _ in contestants]
    gc.collect()
    gc.disable()
    try:
        for repetition in range(-warmup, repetitions):
            for number in _order(len(contestants), repetition):
                before, after = events[number][repetition] if repetition >= 0 else _pair()
                torch().cuda._sleep(HOLD_CYCLES)
                flushed.zero_()
                job.total(meeting)
                before.record()
                contestants[number].run()
                after.record()
            finish()
    finally:
        gc.enable()
    times = [[before.elapsed_time(after) for before, after in pairs] for pairs in events]
    return job.largest(torch().tensor(times, device="cuda", dtype=torch().float64)).tolist()


def _pair() -> tuple[Any, Any]:
    return torch().cuda.Event(enable_timing=True), torch().cuda.Event(enable_timing=True)


def _order(count: int, repetition: int) -> Iterable[int]:
    """The contestants in round-robin order: each repetition begins with the next one."""
    return ((repetition + number) % count for number in range(count))


def summary(samples: Sequence[float]) -> dict[str, Any]:
    """Median and percentiles of times in milliseconds, and the times themselves."""
    cuts = statistics.quantiles(samples, n=20, method="inclusive")
    return {
        "median_ms": round(statistics.median(samples), 6),
        "p5_ms": round(cuts[0], 6),
        "p25_ms": round(cuts[4], 6),
        "p75_ms": round(cuts[14], 6),
        "p95_ms": round(cuts[18], 6),
        "samples_ms": [round(sample, 6) for sample in samples],
    }


# A comparison


@dataclass(frozen=True)
class Entrant:
    """A contestant, and the reference that its result is compared with."""

    contestant: Contestant
    reference: Reference

    @property
    def name(self) -> str:
        return self.contestant.name


def compete(entrants: Sequence[Entrant], job: Job, *, repetitions: int, warmup: int = 5) -> dict[str, Any]:
    """Check all, then measure those that are right; by name the `summary`, or an `error`. Raises `Hung`."""
    found: dict[str, dict[str, Any]] = {}
    ready: list[Entrant] = []
    for entrant in entrants:
        found[entrant.name] = _try_out(entrant, job)
        if "error" not in found[entrant.name]:
            ready.append(entrant)
    times = measure([entrant.contestant for entrant in ready], job, repetitions=repetitions, warmup=warmup)
    for entrant, samples in zip(ready, times, strict=True):
        found[entrant.name] |= summary(samples)
    return found


def _try_out(entrant: Entrant, job: Job) -> dict[str, Any]:
    """Run it twice, the result poisoned in between, and check it: the largest error over its bound, or an `error`."""
    problem = ""
    result = None
    try:
        # A new allocation most often gets the memory of the poisoned result.
        entrant.contestant.run().fill_(math.nan)
        result = entrant.contestant.run()
        finish()
    except Hung:
        raise
    except Exception as failure:
        problem = str(failure).partition("\n")[0][:LONGEST] or type(failure).__name__
    if job.any(bool(problem)):
        return {"error": problem or "it fails on another rank"}
    try:
        return {"error_over_bound": entrant.reference.check(result)}
    except Wrong as failure:
        return {"error": str(failure)}


@dataclass(frozen=True)
class Case:
    """A problem with this rank's inputs and what its result must be."""

    problem: Problem
    inputs: Inputs
    reference: Reference

    @classmethod
    def draw(cls, problem: Problem, job: Job) -> Case:
        inputs = draw(problem, job)
        return cls(problem, inputs, Reference(problem, inputs, job))

    def alone(self, job: Job) -> Case | None:
        """The matmul alone; `None` if this is it."""
        if self.problem.collective == "none" or job.ranks == 1:
            return None
        return Case.draw(gemm_alone(self.problem), job)

    def entrants(self, job: Job, suffix: str = "") -> list[Entrant]:
        """The peers, `suffix` added to their names."""
        found = peers(self.problem, self.inputs, job)
        return [Entrant(Contestant(peer.name + suffix, peer.run), self.reference) for peer in found]


def field(case: Case, alone: Case | None, job: Job) -> list[Entrant]:
    """The peers, and the matmul alone as `cublas_alone`."""
    return [*case.entrants(job), *(alone.entrants(job, "_alone") if alone else [])]


# Alone


def say(text: str) -> None:
    """Print a line at once: what follows may be killed."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def line(times: Mapping[str, Any], flops: float) -> str:
    """Median, 5th to 95th percentile and rate, or what went wrong."""
    if "error" in times:
        return f"ERROR {times['error']}"
    spread = f"{times['p5_ms']:.4f} to {times['p95_ms']:.4f}"
    return f"{times['median_ms']:.4f} ms ({spread}) {flops / times['median_ms'] / 1e9:.0f} TFLOP/s"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the peers alone."""
    parser = argparse.ArgumentParser(description="Measure what would be run instead of pkc.")
    parser.add_argument("--collective", choices=get_args(Collective), action="append")
    parser.add_argument("--sizes", default="4096,8192,16384", help="M = N = K of all ranks together")
    parser.add_argument("--repetitions", type=int, default=30)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(argv)
    collectives: Sequence[Collective] = given.collective or ["reduce_scatter", "all_gather"]
    job = join()
    results: list[dict[str, Any]] = []
    for collective in collectives:
        for size in map(int, given.sizes.split(",")):
            problem = Problem(collective, size, size, size, job.ranks)
            case = Case.draw(problem, job)
            found = compete(field(case, case.alone(job), job), job, repetitions=given.repetitions)
            results.append({"collective": collective, "ranks": job.ranks, "size": size, "contestants": found})
            if job.rank:
                continue
            for name, times in found.items():
                say(f"{collective} {size} on {job.ranks}: {name} {line(times, problem.flops)}")
            if given.json:
                given.json.write_text(json.dumps(results, indent=1))
    job.leave()
    return 0


if __name__ == "__main__":
    sys.exit(main())
