"""The family of collectives: what all ranks exchange and add up, and nothing else."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pkc.bench.peers.contest import Contestant
from pkc.bench.peers.gemm import symmetric
from pkc.bench.peers.problem import Case, Shape, Usual, numbers_of
from pkc.bench.peers.ranks import Job, dist, torch
from pkc.bench.peers.reference import UNIT, Reference, Rows, sample

Exchange: TypeAlias = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]

FORM = "MxN, such as 8192x8192: the rows and columns of the whole matrix"

_MOVED = ("all_gather", "all_to_all")
"""Collectives that add nothing up; they begin with shards of rows, the others with a matrix on each rank."""


@dataclass(frozen=True)
class Collective(Usual):
    """Y[m, n] of X[m, n], in bf16.

    all_reduce: the sum of the ranks' X on every rank. reduce_scatter: rows of it. all_gather: rows of X become all of X
    on every rank. all_to_all: rows of X become columns. Rows, and columns that are exchanged, are divided evenly.
    """

    exchange: Exchange
    m: int
    n: int
    ranks: int

    @property
    def size(self) -> str:
        return f"{self.m}x{self.n}"

    @property
    def fields(self) -> Mapping[str, Any]:
        return {"m": self.m, "n": self.n}

    @property
    def local(self) -> Shape:
        """The shape of X on each rank."""
        return (self.m // self.ranks, self.n) if self.exchange in _MOVED else (self.m, self.n)

    @property
    def local_result(self) -> Shape:
        """The shape of Y on each rank."""
        if self.exchange == "reduce_scatter":
            return self.m // self.ranks, self.n
        return (self.m, self.n // self.ranks) if self.exchange == "all_to_all" else (self.m, self.n)

    @property
    def flops(self) -> float:
        return 0.0

    @property
    def link_bytes(self) -> int:
        """What a rank sends at least: all_reduce a shard to each owner, and the sum of one to each rank."""
        shard = 2 * self.m * self.n // self.ranks
        times = {"all_reduce": 2.0, "all_to_all": 1 / self.ranks}.get(self.exchange, 1.0)
        return int((self.ranks - 1) * shard * times)

    @property
    def operands(self) -> Sequence[Shape]:
        return ((self.m, self.n),)

    @property
    def result(self) -> Shape:
        return self.m, self.n

    @property
    def uneven(self) -> tuple[str, int, int] | None:
        dims = {"M": self.m} | ({"N": self.n} if self.exchange == "all_to_all" else {})
        return next(((dim, size, self.ranks) for dim, size in dims.items() if size % self.ranks), None)

    def draw(self, job: Job) -> Case:
        """Normally distributed inputs."""
        generator = torch().Generator(device=job.place).manual_seed(job.rank)
        x = torch().randn(self.local, device=job.place, dtype=torch().bfloat16, generator=generator)
        return Case(self, (x,), reference(self, x, job), tuple(peers(self, x, job)))


def parse(text: str, exchange: Exchange, ranks: int) -> Collective | None:
    """The problem of a size as the command line has it; `None` if it is no size."""
    numbers = numbers_of(text, 2)
    if numbers is None:
        return None
    m, n = numbers
    return Collective(exchange, m, n, ranks)


# The peers


def peers(problem: Collective, x: Any, job: Job) -> Iterator[Contestant]:
    """NCCL's collective, and those of torch's symmetric memory; both use no NVLink multicast."""
    if job.ranks == 1:
        return
    made = {
        "all_reduce": _all_reduces,
        "all_gather": _all_gathers,
        "reduce_scatter": _reduce_scatters,
        "all_to_all": _all_to_alls,
    }
    yield from made[problem.exchange](problem, x)


def _into(out: Any, call: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        call()
        return out

    return run


def _all_reduces(_: Collective, x: Any) -> Iterator[Contestant]:
    out = x.clone()
    # NCCL through torch has no other than this, which overwrites what it reads.
    yield Contestant("nccl", _into(out, lambda: dist().all_reduce(out)), restore=lambda: out.copy_(x))
    ready = functools.cache(lambda: _symmetric(x))

    def one_shot() -> Any:
        shared, group = ready()
        return torch().ops.symm_mem.one_shot_all_reduce(shared, "sum", group)

    yield Contestant("torch_one_shot", one_shot)
    again = functools.cache(lambda: _symmetric(x))

    def two_shot() -> Any:
        shared, group = again()
        torch().ops.symm_mem.two_shot_all_reduce_(shared, "sum", group)
        return shared

    yield Contestant("torch_two_shot", two_shot, restore=lambda: again()[0].copy_(x))


def _all_gathers(problem: Collective, x: Any) -> Iterator[Contestant]:
    out = x.new_zeros(problem.local_result)
    yield Contestant("nccl", _into(out, lambda: dist().all_gather_into_tensor(out, x)))


def _reduce_scatters(problem: Collective, x: Any) -> Iterator[Contestant]:
    out = x.new_zeros(problem.local_result)
    yield Contestant("nccl", _into(out, lambda: dist().reduce_scatter_tensor(out, x)))
    ready = functools.cache(lambda: _symmetric(x))
    sums = x.new_zeros(problem.local_result)

    def scatter() -> Any:
        shared, group = ready()
        # The rows of a rank lie side by side: without `split_last_dim` it takes one dimension.
        torch().ops.symm_mem.reduce_scatter_out(shared.view(-1), group, False, sums.view(-1))
        return sums

    yield Contestant("torch_reduce_scatter", scatter)


def _all_to_alls(problem: Collective, x: Any) -> Iterator[Contestant]:
    """NCCL sends what lies side by side: a copy brings the columns of each rank together, the rows that come are in
    order. `nccl` leaves the copy out, so that its operand is in another order than that of pkc."""
    ranks, rows, columns = problem.ranks, *problem.local
    pieces = x.view(rows, ranks, columns // ranks).transpose(0, 1)
    out, sent = x.new_zeros(problem.local_result), pieces.contiguous()
    copied = x.new_zeros(pieces.shape)

    def with_copy() -> None:
        copied.copy_(pieces)
        dist().all_to_all_single(out, copied)

    yield Contestant("nccl", _into(out, lambda: dist().all_to_all_single(out, sent)))
    yield Contestant("nccl_transposed", _into(out, with_copy))


def _symmetric(x: Any) -> tuple[Any, str]:
    """A copy of X in torch's symmetric memory, and the group. Raises `Refused`."""
    shared, group = symmetric(x, x.shape)
    return shared.copy_(x), group


# Correctness


def reference(problem: Collective, x: Any, job: Job) -> Reference:
    """Some rows of the local Y. What is only moved must be exact; sums may round once for each rank."""
    rows, columns = problem.local_result
    at = sample(rows)
    if problem.exchange in _MOVED:
        whole = x.new_zeros((problem.m, problem.n))
        _gather(whole, x, job)
        first = job.rank * columns if problem.exchange == "all_to_all" else 0
        exact = whole[at, first : first + columns].double()
        return Reference(job, (rows, columns), Rows(0, at, exact, exact.abs() * 0, 1))
    every = [rank * rows + row for rank in range(problem.m // rows) for row in at]
    addends = x[every].double()
    local = slice(0, len(at)) if rows == problem.m else slice(job.rank * len(at), (job.rank + 1) * len(at))
    exact, size = job.total(addends.clone())[local], job.total(addends.abs())[local]
    return Reference(job, (rows, columns), Rows(0, at, exact, job.ranks * UNIT * size, job.ranks))


def _gather(whole: Any, x: Any, job: Job) -> None:
    if job.ranks == 1:
        whole.copy_(x)
    else:
        dist().all_gather_into_tensor(whole, x)
