"""The GEMM families: a matmul alone, followed by a reduce-scatter or an all-reduce, or preceded by an all-gather."""

from __future__ import annotations

import functools
import importlib
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pkc.bench.peers.contest import Contestant, Refused
from pkc.bench.peers.problem import Case, Shape, Usual, numbers_of
from pkc.bench.peers.ranks import NO_MULTICAST, Job, dist, torch
from pkc.bench.peers.reference import UNIT, Reference, Rows, sample

Collective: TypeAlias = Literal["none", "reduce_scatter", "all_reduce", "all_gather"]

_SUMMED = ("reduce_scatter", "all_reduce")
"""Collectives behind a matmul: a rank has a share of what is summed over."""

FORM = "M = N = K, such as 8192, or MxNxK, such as 16x8192x8192"


class Sizes(Usual):
    """What a problem of M x N x K says of its size."""

    m: int
    n: int
    k: int

    @property
    def size(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"

    @property
    def fields(self) -> Mapping[str, Any]:
        return {"m": self.m, "n": self.n, "k": self.k}

    @property
    def square(self) -> int | None:
        return self.m if self.m == self.n == self.k else None


@dataclass(frozen=True)
class Matmul(Sizes):
    """C[m, n] = A[m, k] @ B[k, n] by all ranks together; without a collective, by each rank alone.

    reduce_scatter: a rank has columns of A and rows of B, and ends with rows of C. all_reduce: the same, and ends with
    all of C. all_gather: a rank has rows of A and columns of B, and ends with columns of C. Shards of rows have
    ceil(m / ranks) rows; k and n are divided evenly.
    """

    exchange: Collective
    m: int
    n: int
    k: int
    ranks: int

    @property
    def local_n(self) -> int:
        return self.n // self.ranks if self.exchange == "all_gather" else self.n

    @property
    def local_k(self) -> int:
        return self.k // self.ranks if self.exchange in _SUMMED else self.k

    @property
    def shard(self) -> int:
        """The number of rows of the longest shard."""
        return -(-self.m // self.ranks)

    def owned(self, rank: int) -> int:
        """How many rows a rank owns: of C if it is scattered, of A if it is gathered."""
        return max(0, min(self.m - rank * self.shard, self.shard))

    @property
    def flops(self) -> float:
        return 2.0 * self.m * self.local_n * self.local_k

    @property
    def link_bytes(self) -> int:
        """A shard of C from, or of A to, each other rank; of C both if it is summed for all."""
        widths = {"none": 0, "reduce_scatter": self.n, "all_reduce": 2 * self.n, "all_gather": self.k}
        return 2 * (self.ranks - 1) * self.shard * widths[self.exchange]

    @property
    def operands(self) -> Sequence[Shape]:
        return (self.m, self.local_k), (self.local_k, self.local_n)

    @property
    def result(self) -> Shape:
        return self.m, self.local_n

    @property
    def uneven(self) -> tuple[str, int, int] | None:
        if self.exchange == "none":
            return None
        dim, size = ("N", self.n) if self.exchange == "all_gather" else ("K", self.k)
        return (dim, size, self.ranks) if size % self.ranks else None

    def alone(self) -> Sequence[Matmul]:
        if self.exchange == "none" or self.ranks == 1:
            return ()
        return (Matmul("none", self.m, self.local_n, self.local_k, self.ranks),)

    def draw(self, job: Job) -> Case:
        """Normally distributed inputs: the values decide how much power the MMAs take, hence the clock."""
        rows = self.shard if self.exchange == "all_gather" else self.m
        generator = torch().Generator(device=job.place).manual_seed(job.rank)
        options = {"device": job.place, "dtype": torch().bfloat16, "generator": generator}
        a = torch().randn((rows, self.local_k), **options)
        if self.exchange == "all_gather":
            a[self.owned(job.rank) :] = 0
        b = torch().randn((self.local_k, self.local_n), **options)
        return Case(self, (a, b), reference(self, a, b, job), tuple(peers(self, a, b, job)))


def parse(text: str, exchange: Collective, ranks: int) -> Matmul | None:
    """The problem of a size as the command line has it; `None` if it is no size."""
    sizes = parse_sizes(text)
    return Matmul(exchange, *sizes, ranks) if sizes is not None else None


def parse_sizes(text: str) -> tuple[int, int, int] | None:
    """M, N and K of a size as the command line has it; `None` if it is no size."""
    numbers = numbers_of(text, 1, 3)
    if numbers is None:
        return None
    m, n, k = numbers * 3 if len(numbers) == 1 else numbers
    return m, n, k


# The peers


def peers(problem: Matmul, a: Any, b: Any, job: Job) -> Iterator[Contestant]:
    """The alternatives to pkc for this problem."""
    if problem.exchange == "none" or job.ranks == 1:
        yield Contestant("cublas", _matmul(a, b, problem.m))
    elif problem.exchange == "reduce_scatter":
        yield Contestant("cublas_nccl", _matmul_then_scatter(problem, a, b, job))
        yield Contestant("torch_fused", _fused_scatter(problem, a, b, job))
    elif problem.exchange == "all_reduce":
        yield Contestant("cublas_nccl", _matmul_then_reduce(a, b))
        yield Contestant("cublas_one_shot", _matmul_then_one_shot(problem, a, b))
        yield Contestant("cublas_two_shot", _matmul_then_two_shot(problem, a, b))
    else:
        yield Contestant("cublas_nccl", _gather_then_matmul(problem, a, b))
        yield Contestant("torch_fused", _fused_gather(problem, a, b))
        yield Contestant("torch_symmetric", _fused_gather(problem, a, b, in_symmetric_memory=True))
        yield Contestant("torch_native", _native_gather(problem, a, b))


def _matmul(a: Any, b: Any, rows: int) -> Callable[[], Any]:
    left, out = a[:rows], a.new_zeros(rows, b.shape[1])

    def run() -> Any:
        torch().matmul(left, b, out=out)
        return out

    return run


def _matmul_then_scatter(problem: Matmul, a: Any, b: Any, job: Job) -> Callable[[], Any]:
    # NCCL scatters equal shards: rows beyond m are padding.
    padded, local = a.new_zeros(job.ranks * problem.shard, problem.n), a.new_zeros(problem.shard, problem.n)
    partial, result = padded[: problem.m], local[: problem.owned(job.rank)]

    def run() -> Any:
        torch().matmul(a, b, out=partial)
        dist().reduce_scatter_tensor(local, padded)
        return result

    return run


def _matmul_then_reduce(a: Any, b: Any) -> Callable[[], Any]:
    multiply = _matmul(a, b, a.shape[0])

    def run() -> Any:
        result = multiply()
        dist().all_reduce(result)
        return result

    return run


def _matmul_then_one_shot(problem: Matmul, a: Any, b: Any) -> Callable[[], Any]:
    ready = functools.cache(lambda: symmetric(a, problem.result))

    def run() -> Any:
        shared, group = ready()
        torch().matmul(a, b, out=shared)
        return torch().ops.symm_mem.one_shot_all_reduce(shared, "sum", group)

    return run


def _matmul_then_two_shot(problem: Matmul, a: Any, b: Any) -> Callable[[], Any]:
    ready = functools.cache(lambda: symmetric(a, problem.result))

    def run() -> Any:
        shared, group = ready()
        torch().matmul(a, b, out=shared)
        torch().ops.symm_mem.two_shot_all_reduce_(shared, "sum", group)
        return shared

    return run


def _gather_then_matmul(problem: Matmul, a: Any, b: Any) -> Callable[[], Any]:
    gathered = a.new_zeros(problem.ranks * problem.shard, problem.k)
    multiply = _matmul(gathered, b, problem.m)

    def run() -> Any:
        dist().all_gather_into_tensor(gathered, a)
        return multiply()

    return run


def _fused_scatter(problem: Matmul, a: Any, b: Any, job: Job) -> Callable[[], Any]:
    # Torch scatters equal shards too: rows beyond m are padding, there before the time begins.
    padded = padded_rows(a, job.ranks * problem.shard)
    owned = problem.owned(job.rank)

    def run() -> Any:
        name = symmetric_group()
        return torch().ops.symm_mem.fused_matmul_reduce_scatter(padded, b, "sum", 0, name)[:owned]

    return run


def _fused_gather(problem: Matmul, a: Any, b: Any, *, in_symmetric_memory: bool = False) -> Callable[[], Any]:
    ready = functools.cache(lambda: _in_place(a) if in_symmetric_memory else (a, symmetric_group()))

    def run() -> Any:
        shard, name = ready()
        # A is returned too, which is the default: without it torch may use multicast where there is some.
        _, (out,) = torch().ops.symm_mem.fused_all_gather_matmul(shard, [b], 0, name)
        return out[: problem.m]

    return run


_NATIVE = "TORCH_SYMM_MEM_ENABLE_NATIVE_ASYNC_TP"
"""Torch looks at each call whether this is in the environment."""


def _native_gather(problem: Matmul, a: Any, b: Any) -> Callable[[], Any]:
    """As `_fused_gather` of an operand in symmetric memory, by one matmul that waits for the rows that it needs."""
    gather = _fused_gather(problem, a, b, in_symmetric_memory=True)

    def run() -> Any:
        os.environ[_NATIVE] = "1"
        try:
            if not _is_native(a, b):
                raise Refused(f"torch has no native kernel for {problem.m} rows over {problem.ranks} ranks")
            return gather()
        finally:
            del os.environ[_NATIVE]

    return run


def _is_native(a: Any, b: Any) -> bool:
    """Whether torch takes its native kernel for a shard of A; without it, it does as if it had not been asked."""
    module = importlib.import_module("torch.distributed._symmetric_memory")
    asked = getattr(module, "_should_use_fused_all_gather_matmul_native", None)
    return asked is not None and asked(a, [b], 0, symmetric_group())


def _in_place(a: Any) -> tuple[Any, str]:
    """A copy of A in torch's symmetric memory, and the group. Raises `Refused`."""
    shared, group = symmetric(a, a.shape)
    return shared.copy_(a), group


def padded_rows(a: Any, rows: int) -> Any:
    """A with so many rows: zeros behind its own."""
    if len(a) == rows:
        return a
    whole = a.new_zeros((rows, *a.shape[1:]))
    whole[: len(a)] = a
    return whole


def symmetric(like: Any, shape: Shape) -> tuple[Any, str]:
    """Elements in torch's symmetric memory, of the type of `like`, and the group of all ranks. Raises `Refused`."""
    group = symmetric_group()
    module = importlib.import_module("torch.distributed._symmetric_memory")
    shared = module.empty(shape, dtype=like.dtype, device=like.device)
    module.rendezvous(shared, group)
    return shared, group


@functools.cache
def symmetric_group() -> str:
    """The name of the group of all ranks. Raises `Refused`. Importing the module is what defines its operators."""
    missing = [name for name, value in NO_MULTICAST.items() if os.environ.get(name) != value]
    if missing:
        raise Refused(f"torch's symmetric memory might use NVLink multicast: {', '.join(missing)} not set")
    module = importlib.import_module("torch.distributed._symmetric_memory")
    kind = importlib.import_module("torch._C._autograd").DeviceType.CUDA
    if module._SymmetricMemory.has_multicast_support(kind, torch().cuda.current_device()):
        raise Refused("torch reports NVLink multicast although the environment forbids it")
    name = dist().group.WORLD.group_name
    with warnings.catch_warnings():
        # Newer versions say that this is not needed any more; older ones need it.
        warnings.simplefilter("ignore")
        module.enable_symm_mem_for_group(name)
    return name


# Correctness


def reference(problem: Matmul, a: Any, b: Any, job: Job) -> Reference:
    """Some rows of the local shard of C; a result rounds to bf16 once for each rank's addend and once at the end."""
    scattered, summed = problem.exchange == "reduce_scatter", problem.exchange in _SUMMED
    shape = (problem.owned(job.rank) if scattered else problem.m, problem.local_n)
    at = [row for row in sample(problem.shard if scattered else problem.m) if row < shape[0]]
    left, right = _gathered(problem, a, job), b.double()
    if scattered:
        exact, size = _scattered(problem, left, right, len(at), job)
    else:
        exact = left[at].double() @ right
        size = exact.abs()
        if summed:
            exact, size = job.total(exact), job.total(size)
    roundings = problem.ranks + 1 if summed else 2
    return Reference(job, shape, Rows(0, at, exact, roundings * UNIT * size, roundings))


def _scattered(problem: Matmul, left: Any, right: Any, count: int, job: Job) -> tuple[Any, Any]:
    """The sums of all ranks for the first `count` sampled rows of this rank, and the sums of their sizes."""
    sampled = sample(problem.shard)
    # All ranks multiply the rows of all owners; one that nobody owns repeats the last.
    every = [min(rank * problem.shard + row, problem.m - 1) for rank in range(problem.ranks) for row in sampled]
    addends = left[every].double() @ right
    local = slice(job.rank * len(sampled), job.rank * len(sampled) + count)
    return job.total(addends.clone())[local], job.total(addends.abs())[local]


def _gathered(problem: Matmul, a: Any, job: Job) -> Any:
    """This rank's A, or all of it if it is gathered."""
    if problem.exchange != "all_gather" or job.ranks == 1:
        return a
    everything = a.new_zeros(job.ranks * problem.shard, problem.k)
    dist().all_gather_into_tensor(everything, a)
    return everything[: problem.m]
