"""The attention families: on one GPU, and over a sequence that is spread over the ranks."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pkc.bench.peers.contest import Contestant
from pkc.bench.peers.problem import Case, Shape, Usual, numbers_of
from pkc.bench.peers.ranks import Job, dist, torch
from pkc.bench.peers.reference import UNIT, Reference, Rows, sample
from pkc.dialect.blocks import zigzag_halves

Exchange: TypeAlias = Literal["none", "ring", "all_to_all"]

FORM = (
    "BxHxS, such as 4x16x8192, or BxHxSxD, such as 4x32x4096x64; with +causal behind it for a causal mask,"
    " or +causal+zigzag for one over positions in zigzag order around a ring"
)
HEAD = 128
"""D where the size does not say it."""
CAUSAL, ZIGZAG = "+causal", "+zigzag"

CUDNN, FLASH = "CUDNN_ATTENTION", "FLASH_ATTENTION"
"""Names of torch's `SDPBackend`."""
_SHORT = {CUDNN: "cudnn", FLASH: "flash"}


@dataclass(frozen=True)
class Attention(Usual):
    """O = softmax(Q K^T / sqrt(d)) V for Q[b, h, s, d] and K, V[b, h, t, d]; without an exchange, by each rank alone.

    ring, all_to_all: s = t positions are divided evenly among the ranks. For ring a rank computes the rows of its
    positions, for all_to_all all rows of h / ranks heads; both end with the positions that they began with. With zigzag
    these are in zigzag order, so that ranks have as much to do under a causal mask.
    """

    exchange: Exchange
    b: int
    h: int
    s: int
    t: int
    d: int
    causal: bool
    ranks: int
    zigzag: bool = False

    @property
    def size(self) -> str:
        return f"{self.b}x{self.h}x{self.s}x{self.d}{CAUSAL * self.causal}{ZIGZAG * self.zigzag}"

    @property
    def fields(self) -> Mapping[str, Any]:
        sizes = {"b": self.b, "h": self.h, "s": self.s, "t": self.t, "d": self.d, "causal": self.causal}
        return {**sizes, **({"zigzag": True} if self.zigzag else {})}

    @property
    def spread(self) -> bool:
        """Whether positions are divided among several ranks."""
        return self.exchange != "none" and self.ranks > 1

    @property
    def local_s(self) -> int:
        """The rows of Q and O on each rank."""
        return self.s // self.ranks if self.spread else self.s

    @property
    def flops(self) -> float:
        """Of both matmuls; half of it if causal, and the mean of the ranks."""
        return 4.0 * self.b * self.h * self.local_s * self.t * self.d / (2 if self.causal else 1)

    @property
    def link_bytes(self) -> int:
        """ring: K and V from each other rank. all_to_all: what other ranks compute of local Q, K, V, and O back."""
        shard = 2 * self.b * self.h * self.local_s * self.d
        if not self.spread:
            return 0
        return (self.ranks - 1) * (2 * shard if self.exchange == "ring" else 4 * shard // self.ranks)

    @property
    def operands(self) -> Sequence[Shape]:
        keys = (self.b, self.h, self.t, self.d)
        return self.result, keys, keys

    @property
    def result(self) -> Shape:
        return self.b, self.h, self.s, self.d

    @property
    def constants(self) -> Mapping[str, int]:
        return {"D": self.d, **({"causal": True} if self.causal else {}), **({"zigzag": True} if self.zigzag else {})}

    @property
    def scalars(self) -> Mapping[str, float]:
        """The scale of a softmax to base 2."""
        return {"scale": math.log2(math.e) / math.sqrt(self.d)}

    @property
    def uneven(self) -> tuple[str, int, int] | None:
        # Causal rows have unequal work, so the same work alone is that of some heads.
        by_heads = self.exchange == "all_to_all" or self.causal
        dims = [("S", self.s, self.ranks * (1 + self.zigzag)), *([("H", self.h, self.ranks)] if by_heads else [])]
        return next((dim for dim in dims if self.spread and dim[1] % dim[2]), None)

    def positions(self, rank: int) -> Sequence[int]:
        """The positions of a rank's rows, in their order."""
        return [start + row for start, length in _ranges(self, rank) for row in range(length)]

    def alone(self) -> Sequence[Attention]:
        if not self.spread:
            return ()
        by_heads = self.exchange == "all_to_all" or self.causal
        heads, rows = (self.h // self.ranks, self.s) if by_heads else (self.h, self.local_s)
        return (Attention("none", self.b, heads, rows, self.t, self.d, self.causal, self.ranks),)

    def draw(self, job: Job) -> Case:
        generator = torch().Generator(device=job.place).manual_seed(job.rank)
        options = {"device": job.place, "dtype": torch().bfloat16, "generator": generator}
        rows = (self.local_s, self.local_s, self.local_s) if self.spread else (self.s, self.t, self.t)
        q, k, v = (torch().randn((self.b, self.h, count, self.d), **options) for count in rows)
        return Case(self, (q, k, v), reference(self, q, k, v, job), tuple(peers(self, q, k, v, job)))


def parse(text: str, exchange: Exchange, ranks: int) -> Attention | None:
    """The problem of a size as the command line has it; `None` if it is no size."""
    size = text.removesuffix(ZIGZAG)
    zigzag = size != text
    size, causal = size.removesuffix(CAUSAL), size.endswith(CAUSAL)
    if zigzag and (exchange != "ring" or not causal):
        return None
    numbers = numbers_of(size, 3, 4)
    if numbers is None:
        return None
    b, h, s, d = numbers if len(numbers) == 4 else (*numbers, HEAD)
    return Attention(exchange, b, h, s, s, d, causal, ranks, zigzag)


# The peers


def peers(problem: Attention, q: Any, k: Any, v: Any, job: Job) -> Iterator[Contestant]:
    """The alternatives to pkc for this problem."""
    if not problem.spread:
        yield Contestant("cudnn", lambda: attend(CUDNN, q, k, v, problem.causal))
        yield Contestant("flash", lambda: attend(FLASH, q, k, v, problem.causal))
        return
    backend = FLASH if problem.causal else CUDNN
    yield Contestant(f"all_gather_{_SHORT[backend]}", gather_then_attend(backend, problem, q, k, v, job))
    if problem.h % job.ranks == 0:
        yield Contestant("all_to_all_cudnn", exchange_then_attend(CUDNN, problem, q, k, v, job))


def attend(backend: str, q: Any, k: Any, v: Any, causal: bool = False, mask: Any = None) -> Any:
    """torch's attention by one of its backends; it raises `RuntimeError` if this one cannot do it."""
    choice = importlib.import_module("torch.nn.attention")
    with choice.sdpa_kernel(getattr(choice.SDPBackend, backend)):
        return torch().nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)


def gather_then_attend(backend: str, problem: Attention, q: Any, k: Any, v: Any, job: Job) -> Callable[[], Any]:
    """All K and V to all ranks; if causal, each range of a rank's positions takes those up to its end."""
    order = _by_position(problem, q.device)
    ranges = _ranges(problem, job.rank)
    bias = importlib.import_module("torch.nn.attention.bias")
    masks = [bias.causal_lower_right(length, first + length) for first, length in ranges if problem.causal]

    def run() -> Any:
        keys, values = (_ordered(gathered(x, job), order) for x in (k, v))
        if not problem.causal:
            return attend(backend, q, keys, values)
        found: list[Any] = []
        rows = q.split([length for _, length in ranges], dim=2)
        for (first, length), mask, some in zip(ranges, masks, rows, strict=True):
            seen = first + length
            found.append(attend(backend, some, keys[:, :, :seen], values[:, :, :seen], mask=mask))
        return found[0] if len(found) == 1 else torch().cat(found, dim=2)

    return run


def exchange_then_attend(backend: str, problem: Attention, q: Any, k: Any, v: Any, job: Job) -> Callable[[], Any]:
    """All positions of some heads to each rank, and what it computes of them back."""
    order = _by_position(problem, q.device)
    back = None if order is None else order.argsort()

    def run() -> Any:
        queries, keys, values = (_ordered(to_heads(x, job), order) for x in (q, k, v))
        return to_positions(_ordered(attend(backend, queries, keys, values, problem.causal), back), job)

    return run


def _ranges(problem: Attention, rank: int) -> list[tuple[int, int]]:
    """The first position and the length of each range of a rank's rows."""
    if not problem.zigzag:
        return [(rank * problem.local_s, problem.local_s)]
    return [(start, length) for start, length in zigzag_halves(problem.s, problem.ranks, rank)]


def _by_position(problem: Attention, device: Any) -> Any:
    """Where each position is among the rows of all ranks, one rank's behind the other's; `None` if in this order."""
    if not problem.zigzag:
        return None
    rows = [position for rank in range(problem.ranks) for position in problem.positions(rank)]
    return torch().tensor(rows, device=device).argsort()


def _ordered(x: Any, order: Any) -> Any:
    return x if order is None else x.index_select(2, order)


def gathered(local: Any, job: Job) -> Any:
    """All positions [b, h, s, d] of what is spread over ranks."""
    everything = local.new_empty(job.ranks, *local.shape)
    dist().all_gather_into_tensor(everything.flatten(0, 1), local)
    return everything.movedim(0, 2).flatten(2, 3)


def to_heads(local: Any, job: Job) -> Any:
    """[b, h / ranks, s, d] of this rank's heads, from the positions [b, h, s / ranks, d] of each; copies if it must."""
    sent = local.unflatten(1, (job.ranks, -1)).movedim(1, 0).contiguous()
    return _exchanged(sent).movedim(0, 2).flatten(2, 3)


def to_positions(heads: Any, job: Job) -> Any:
    """The inverse of `to_heads`."""
    sent = heads.unflatten(2, (job.ranks, -1)).movedim(2, 0).contiguous()
    return _exchanged(sent).movedim(0, 1).flatten(1, 2)


def _exchanged(sent: Any) -> Any:
    arrived = torch().empty_like(sent)
    dist().all_to_all_single(arrived, sent)
    return arrived


# Correctness


def reference(problem: Attention, q: Any, k: Any, v: Any, job: Job) -> Reference:
    """Some rows of all heads. A result rounds the weights to bf16, one for each key, and itself at the end."""
    if problem.spread:
        k, v = gathered(k, job), gathered(v, job)
    at = sample(q.shape[2])
    hidden = _hidden(problem, job, at)
    exact, size = torch().empty(2, *q[:, :, at].shape, device=q.device, dtype=torch().float64)
    # One sequence at a time: in float64 the keys of all would take gigabytes.
    for b in range(problem.b):
        scores = q[b][:, at].double() @ k[b].double().mT / math.sqrt(problem.d)
        if problem.causal:
            scores.masked_fill_(hidden.to(q.device), -math.inf)
        weights = scores.softmax(dim=-1)
        exact[b], size[b] = weights @ v[b].double(), weights @ v[b].double().abs()
    bound = UNIT * (size + exact.abs())
    return Reference(job, tuple(q.shape), Rows(2, at, exact, bound, roundings=2, each=True))


def _hidden(problem: Attention, job: Job, at: Sequence[int]) -> Any:
    """Which of the keys of all ranks, one rank's behind the other's, come after the rows `at` of this one."""
    ranks = range(problem.ranks) if problem.spread else range(1)
    keys = torch().tensor([position for rank in ranks for position in problem.positions(rank)])
    rows = torch().tensor(problem.positions(job.rank if problem.spread else 0))
    return keys > rows[list(at)][:, None]
