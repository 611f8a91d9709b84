"""Mixtures of experts: a matmul for each expert, of rows that come from all ranks, or go back there."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from pkc import routing
from pkc.bench.peers.contest import Contestant
from pkc.bench.peers.problem import Case, Shape, Usual, numbers_of
from pkc.bench.peers.ranks import Job, dist, torch
from pkc.bench.peers.reference import SAMPLED_ROWS, UNIT, Reference, Rows

Exchange: TypeAlias = Literal["none", "dispatch", "combine", "gathered_combine", "both"]

FORM = "tokens of all ranks, such as 8192, or tokens x experts x top x H x N, such as 8192x256x8x7168x2048"

EXPERTS, TOP, HIDDEN, INNER = 256, 8, 7168, 2048
"""Of DeepSeek-V3: routed experts, how many a token has, the length of a token's row and of an expert's."""

_UNEVEN = 0.15
"""How much experts differ in what is chosen, beside what tokens differ: some get half, some twice as many as others."""


@dataclass(frozen=True)
class Experts(Usual):
    """Rows of `tokens` for the `top` of so many `experts`, which are spread over the ranks like the tokens.

    dispatch: Y[e] = X[rows of e] @ W[e], X[tokens, hidden] sharded, W[e] [hidden, inner]; none: the same of rows that
    are here; combine, gathered_combine: each token's weighted sum of its experts' rows, of `hidden` elements, which the
    experts' ranks send or the token's rank fetches; both: dispatch, SwiGLU of two such matmuls, one back, combine.
    """

    exchange: Exchange
    tokens: int
    experts: int
    top: int
    hidden: int
    inner: int
    ranks: int

    @property
    def size(self) -> str:
        return "x".join(map(str, (self.tokens, self.experts, self.top, self.hidden, self.inner)))

    @property
    def fields(self) -> Mapping[str, Any]:
        names = ("tokens", "experts", "top", "hidden", "inner")
        return {name: getattr(self, name) for name in names}

    @property
    def local(self) -> int:
        """Experts of a rank."""
        return self.experts // self.ranks

    @property
    def shard(self) -> int:
        """Tokens of a rank."""
        return self.tokens // self.ranks

    def tables(self, rank: int) -> routing.Tables:
        return _tables(replace(self, exchange="dispatch"), rank)

    @functools.cached_property
    def most(self) -> int:
        """The most rows of an expert, in whole blocks."""
        return self.tables(0).rows.shape[1]

    @property
    def flops(self) -> float:
        matmuls = {"none": 1, "dispatch": 1, "both": 3}.get(self.exchange)
        rows = self.tokens * self.top / self.ranks
        return 2.0 * rows * self.hidden * (1 if matmuls is None else matmuls * self.inner)

    @property
    def link_bytes(self) -> int:
        """Rows of other ranks' tokens, each once, of the rank that has most."""
        if self.exchange == "none":
            return 0
        ways = 2 if self.exchange == "both" else 1
        return ways * 2 * self.hidden * max(self._foreign(rank) for rank in range(self.ranks))

    @property
    def memory_bytes(self) -> int:
        """Weights, and rows of activations, each once: what experts read and give; of both ways, a token's row once for
        each of its experts as it comes and as it goes back, and its sum."""
        rows, width = self.tokens * self.top // self.ranks, self.hidden + self.inner
        weights = self.local * self.hidden * self.inner
        elements: dict[str, int] = {
            "combine": rows * self.hidden + self.shard * self.hidden,
            "gathered_combine": rows * self.hidden + self.shard * self.hidden,
            "both": 3 * weights + 2 * rows * self.hidden + self.shard * self.hidden,
        }
        return 2 * elements.get(self.exchange, weights + rows * width)

    def _foreign(self, rank: int) -> int:
        wanted = np.unique(self.tables(rank).rows)
        return int(((wanted >= 0) & (wanted // self.shard != rank)).sum())

    @property
    def operands(self) -> Sequence[Shape]:
        table, back = (self.local, self.most), (self.top, self.shard)
        outputs, weights = (self.local * self.most, self.hidden), (self.local, self.hidden, self.inner)
        by_exchange: dict[str, Sequence[Shape]] = {
            "none": ((*table, self.hidden), weights, (self.local,)),
            "dispatch": ((self.tokens, self.hidden), weights, table, (self.local,)),
            "combine": ((*table, self.hidden), table, table, (self.local,)),
            "gathered_combine": (outputs, (*back, 2), back),
            "both": (
                *((self.tokens, self.hidden), outputs[:1], (self.local,), (*back, 2), back),
                *(weights, weights, (self.local, self.inner, self.hidden), outputs),
            ),
        }
        return by_exchange[self.exchange]

    @property
    def result(self) -> Shape:
        by_exchange: dict[str, Shape] = {
            "combine": (self.tokens, self.hidden),
            "gathered_combine": (self.shard, self.hidden),
            "both": (self.shard, self.hidden),
        }
        return by_exchange.get(self.exchange, (self.local, self.most, self.inner))

    @property
    def constants(self) -> Mapping[str, int]:
        return {"P": self.most} if self.exchange == "both" else {}

    @property
    def uneven(self) -> tuple[str, int, int] | None:
        dims = (("experts", self.experts), ("tokens", self.tokens))
        return next(((name, size, self.ranks) for name, size in dims if size % self.ranks), None)

    def alone(self) -> Sequence[Experts]:
        return [replace(self, exchange="none")] if self.exchange == "dispatch" else []

    def draw(self, job: Job) -> Case:
        mine = _Rank(self, job)
        if self.exchange == "both":
            return Case(self, mine.both_operands(), mine.both(), tuple(mine.doing_both()))
        if self.exchange.endswith("combine"):
            return Case(self, mine.combined_operands(), mine.combined(), tuple(mine.combining()))
        return Case(self, mine.operands(), mine.multiplied(), tuple(mine.multiplying()))


def parse(text: str, exchange: Exchange, ranks: int) -> Experts | None:
    """The problem of a size as the command line has it; `None` if it is no size."""
    numbers = numbers_of(text, 1, 5)
    if numbers is None:
        return None
    tokens, experts, top, hidden, inner = numbers if len(numbers) == 5 else (*numbers, EXPERTS, TOP, HIDDEN, INNER)
    return Experts(exchange, tokens, experts, top, hidden, inner, ranks) if top <= experts else None


@functools.lru_cache(4)
def _routed(tokens: int, experts: int, top: int) -> tuple[routing.Integers, Any]:
    """The experts of each token, and their weights; the same on all ranks."""
    drawn = np.random.default_rng(0)
    logits = drawn.standard_normal((tokens, experts), np.float32)
    return routing.top_experts(logits + _UNEVEN * drawn.standard_normal(experts, np.float32), top)


@functools.lru_cache(16)
def _tables(problem: Experts, rank: int) -> routing.Tables:
    choices, _ = _routed(problem.tokens, problem.experts, problem.top)
    return routing.tables(choices, problem.experts, rank=rank, ranks=problem.ranks)


class _Rank:
    """The inputs of one rank, what its result must be, and the peers."""

    def __init__(self, problem: Experts, job: Job) -> None:
        self._problem, self._job = problem, job
        generator = torch().Generator(device=job.place).manual_seed(job.rank)
        self._options = {"device": job.place, "dtype": torch().bfloat16, "generator": generator}
        self._tables = problem.tables(job.rank)
        self._count = self._integers(self._tables.count)
        self._rows = self._integers(self._tables.rows)
        # One expert's rows behind the other's, as torch's matmul of groups takes them.
        self._inside = self._rows >= 0
        self._packed = self._rows[self._inside].long()

    def _integers(self, values: Any) -> Any:
        return torch().from_numpy(np.ascontiguousarray(values)).to(self._job.place)

    # A matmul for each expert

    def operands(self) -> tuple[Any, ...]:
        problem = self._problem
        self._tokens = torch().randn((problem.shard, problem.hidden), **self._options)
        self._weights = torch().randn((problem.local, problem.hidden, problem.inner), **self._options)
        if problem.exchange == "none":
            found = torch().zeros(
                (problem.local, problem.most, problem.hidden), device=self._job.place, dtype=torch().bfloat16
            )
            found[self._inside] = self._everything()[self._packed]
            return found, self._weights, self._count
        return self._tokens, self._weights, self._rows, self._count

    def _everything(self) -> Any:
        """The tokens of all ranks."""
        if self._job.ranks == 1:
            return self._tokens
        found = self._tokens.new_empty(self._problem.tokens, self._problem.hidden)
        dist().all_gather_into_tensor(found, self._tokens)
        return found

    def multiplied(self) -> Reference:
        expert = torch().nonzero(self._inside)[:, 0]
        at = torch().linspace(0, len(self._packed) - 1, 8 * SAMPLED_ROWS, device=self._job.place).long().unique()
        left = self._everything()[self._packed[at]].double()
        exact = torch().stack(
            [row @ self._weights[e].double() for row, e in zip(left, expert[at].tolist(), strict=True)]
        )
        return _Packed(self._job, (), Rows(0, at.tolist(), exact, 2 * UNIT * exact.abs(), 2), self._inside)

    def multiplying(self) -> Iterator[Contestant]:
        ends = self._count.cumsum(0, dtype=torch().int32)
        if self._problem.exchange == "none" or self._job.ranks == 1:
            rows = self._everything()[self._packed]
            yield Contestant("torch_grouped", lambda: torch()._grouped_mm(rows, self._weights, offs=ends))
            return
        exchange = self._exchanged(self._tokens)

        def run() -> Any:
            return torch()._grouped_mm(exchange(), self._weights, offs=ends)

        yield Contestant("nccl_grouped", run)

    def _exchanged(self, tokens: Any) -> Callable[[], Any]:
        """NCCL's all-to-all of a copy of each token for each of its experts, and a copy in the order of experts."""
        problem, rank = self._problem, self._job.rank
        sent = [self._of_owner(other, rank) for other in range(problem.ranks)]
        got = [self._of_owner(rank, other) for other in range(problem.ranks)]
        index = self._integers(np.concatenate(sent) - rank * problem.shard).long()
        arrived = torch().from_numpy(np.concatenate(got)).to(self._job.place)
        # The rows of an expert come in the order of ranks from this one on, those of others from rank 0 on.
        by_owner = (self._packed // problem.shard).argsort(stable=True)
        assert bool((self._packed[by_owner] == arrived).all())
        back = by_owner.argsort()
        splits = [[len(rows) for rows in lists] for lists in (got, sent)]

        def run() -> Any:
            received = tokens.new_empty(len(arrived), problem.hidden)
            if problem.ranks > 1:
                dist().all_to_all_single(received, tokens.index_select(0, index), *splits)
            else:
                torch().index_select(tokens, 0, index, out=received)
            return received.index_select(0, back)

        return run

    def _of_owner(self, rank: int, owner: int) -> Any:
        """The tokens of an owner that a rank's experts get, one expert's behind the other's."""
        rows = self._problem.tables(rank).rows
        rows = rows[rows >= 0]
        return rows[rows // self._problem.shard == owner]

    # The way back

    def combined_operands(self) -> tuple[Any, ...]:
        problem = self._problem
        self._outputs = torch().randn((problem.local, problem.most, problem.hidden), **self._options)
        self._share = self._shares()
        if problem.exchange == "combine":
            return self._outputs, self._rows, self._share, self._count
        return self._outputs.flatten(0, 1), *self._back()

    def _back(self) -> tuple[Any, Any]:
        """Where this rank's tokens find what their experts made of them, and by what it is weighted."""
        problem, first = self._problem, self._job.rank * self._problem.shard
        mine = slice(first, first + problem.shard)
        choices, weights = _routed(problem.tokens, problem.experts, problem.top)
        where = routing.places(choices, problem.experts, ranks=problem.ranks)
        return self._integers(where[:, mine]), self._integers(weights.T[:, mine])

    def _shares(self) -> Any:
        """By what each row of this rank's experts is weighted."""
        _, weights = _routed(self._problem.tokens, self._problem.experts, self._problem.top)
        rows, choice = self._tables.rows, self._tables.choice
        return self._integers(np.where(rows >= 0, weights[rows, choice], 0).astype(np.float32))

    def combined(self) -> Reference:
        return self._summed(lambda expert, place: (self._outputs[expert, place].double(),) * 2, self._problem.top + 1)

    def _summed(self, rows: Callable[[Any, Any], tuple[Any, Any]], roundings: int) -> Reference:
        """Sums of some tokens; `rows` gives those of experts at places, and what their errors are in proportion to."""
        problem = self._problem
        at = np.unique(np.linspace(0, problem.shard - 1, SAMPLED_ROWS).astype(int))
        exact = torch().zeros(2, problem.ranks, len(at), problem.hidden, device=self._job.place, dtype=torch().float64)
        for owner in range(problem.ranks):
            for number, token in enumerate(at + owner * problem.shard):
                expert, place = torch().nonzero(self._rows == int(token), as_tuple=True)
                share = self._share[expert, place].double()[:, None]
                addends, sizes = rows(expert, place)
                exact[0, owner, number] = (addends * share).sum(0)
                exact[1, owner, number] = (sizes.abs() * share).sum(0)
        summed, size = self._job.total(exact)[:, self._job.rank]
        bound = roundings * UNIT * size
        return Reference(self._job, (problem.shard, problem.hidden), Rows(0, at.tolist(), summed, bound, roundings))

    def combining(self) -> Iterator[Contestant]:
        outputs, back = self._outputs[self._inside], self._sent_back()
        yield Contestant("nccl_index_add", lambda: back(outputs))

    def _sent_back(self) -> Callable[[Any], Any]:
        """What experts made of tokens, one expert's rows behind the other's: weighted, to the tokens' ranks, added."""
        problem, rank = self._problem, self._job.rank
        share = self._share[self._inside][:, None].bfloat16()
        order = (self._packed // problem.shard).argsort(stable=True)
        sent = [int((self._packed // problem.shard == owner).sum()) for owner in range(problem.ranks)]
        got = [self._of_owner(other, rank) for other in range(problem.ranks)]
        index = self._integers(np.concatenate(got) - rank * problem.shard).long()
        result = share.new_empty(problem.shard, problem.hidden)

        def run(outputs: Any) -> Any:
            back = (outputs * share).index_select(0, order)
            if problem.ranks > 1:
                received = outputs.new_empty(len(index), problem.hidden)
                dist().all_to_all_single(received, back, list(map(len, got)), sent)
                back = received
            return result.zero_().index_add_(0, index, back)

        return run

    # Both ways

    def both_operands(self) -> tuple[Any, ...]:
        problem = self._problem
        self._tokens = torch().randn((problem.shard, problem.hidden), **self._options)
        shape = (problem.local, problem.hidden, problem.inner)
        up, down = problem.hidden**-0.5, problem.inner**-0.5  # so that rows stay as large as they are
        self._gate, self._up = (torch().randn(shape, **self._options) * up for _ in range(2))
        self._down = torch().randn((problem.local, problem.inner, problem.hidden), **self._options) * down
        self._share = self._shares()
        outputs = self._tokens.new_zeros(problem.local * problem.most, problem.hidden)
        rows = self._rows.flatten()
        return self._tokens, rows, self._count, *self._back(), self._gate, self._up, self._down, outputs

    def both(self) -> Reference:
        everything = self._everything()

        def rows(expert: Any, place: Any) -> tuple[Any, Any]:
            made = everything.new_zeros(2, len(expert), self._problem.hidden, dtype=torch().float64)
            for number, (e, p) in enumerate(zip(expert.tolist(), place.tolist(), strict=True)):
                x = everything[self._rows[e, p].long()].double()
                inner = torch().nn.functional.silu(x @ self._gate[e].double()) * (x @ self._up[e].double())
                made[0, number] = inner @ self._down[e].double()
                made[1, number] = inner.abs() @ self._down[e].double().abs()
            return made[0], made[1]

        return self._summed(rows, self._problem.top + 2)

    def doing_both(self) -> Iterator[Contestant]:
        ends, silu = self._count.cumsum(0, dtype=torch().int32), torch().nn.functional.silu
        exchange, back = self._exchanged(self._tokens), self._sent_back()
        together = torch().cat([self._gate, self._up], dim=2)

        def run() -> Any:
            gate, up = torch()._grouped_mm(exchange(), together, offs=ends).chunk(2, dim=1)
            return back(torch()._grouped_mm(silu(gate) * up, self._down, offs=ends))

        yield Contestant("nccl_grouped", run)


@dataclass(frozen=True)
class _Packed(Reference):
    """Of the rows of experts: behind each other, or those of a result that has as many for each expert."""

    inside: Any

    def check(self, result: Any) -> float:
        rows = result[self.inside] if result.dim() > 2 else result
        return Reference(self.job, tuple(rows.shape), self.rows).check(rows)
