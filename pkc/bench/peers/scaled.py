"""The GEMM families in 8-bit floats: with one scale for all, or with scales of blocks as DeepSeek-V3 has them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from pkc.bench.peers import gemm
from pkc.bench.peers.contest import Contestant, Refused
from pkc.bench.peers.gemm import Collective, Matmul, Sizes
from pkc.bench.peers.problem import Case, Shape
from pkc.bench.peers.ranks import Job, dist, torch
from pkc.bench.peers.reference import Reference

_SCALES = 0.5, 0.25
"""Of A and of B, where each has one."""

_BLOCK = 128
"""Columns of A, rows and columns of B, that have one scale."""

_MMA, _KEPT = 32, 2.0**-13
"""What each MMA of so many columns may lose of its sum: tensor cores keep 13 bits behind the leading one."""


@dataclass(frozen=True)
class Scaled(Sizes, ABC):
    """C[m, n] = A[m, k] @ B[n, k] transposed with scales, by all ranks together as `gemm.Matmul`; A and B are e4m3, C
    is bf16."""

    around: Collective
    m: int
    n: int
    k: int
    ranks: int

    FORM: ClassVar[str] = gemm.FORM

    @classmethod
    def parse(cls, text: str, exchange: Collective, ranks: int) -> Self | None:
        """The problem of a size as the command line has it; `None` if it is no size."""
        sizes = gemm.parse_sizes(text)
        return cls(exchange, *sizes, ranks) if sizes is not None else None

    @property
    def plain(self) -> Matmul:
        """The same shapes, without scales."""
        return Matmul(self.around, self.m, self.n, self.k, self.ranks)

    @property
    def exchange(self) -> str:
        return self.around

    @property
    def flops(self) -> float:
        return self.plain.flops

    @property
    def link_bytes(self) -> int:
        """Of C in bf16, of A in 8 bits."""
        return self.plain.link_bytes // (2 if self.around == "all_gather" else 1)

    @property
    def operands(self) -> Sequence[Shape]:
        return (self.m, self.plain.local_k), (self.plain.local_n, self.plain.local_k)

    @property
    def result(self) -> Shape:
        return self.plain.result

    @property
    def uneven(self) -> tuple[str, int, int] | None:
        return self.plain.uneven

    def alone(self) -> Sequence[Self]:
        kind = type(self)
        return [kind("none", same.m, same.n, same.k, same.ranks) for same in self.plain.alone()]

    def draw(self, job: Job) -> Case:
        """Normally distributed numbers, rounded to e4m3."""
        generator = torch().Generator(device=job.place).manual_seed(job.rank)
        rows = self.plain.shard if self.around == "all_gather" else self.m
        shapes = (rows, self.plain.local_k), (self.plain.local_n, self.plain.local_k)
        a, b = (torch().randn(shape, device=job.place, generator=generator) for shape in shapes)
        a, b = a.to(torch().float8_e4m3fn), b.to(torch().float8_e4m3fn)
        scales = self._draw_scales(rows, job, generator)
        return Case(
            self, (a, b, *self._passed(scales)), self._reference(a, b, scales, job), (*self._peers(a, b, scales, job),)
        )

    @abstractmethod
    def _draw_scales(self, rows: int, job: Job, generator: Any) -> tuple[Any, Any]:
        """The scales of so many rows of A, and of B, as tensors."""

    @abstractmethod
    def _passed(self, scales: tuple[Any, Any]) -> Sequence[Any]:
        """Those that the kernel gets as arrays."""

    @abstractmethod
    def _applied(self, a: Any, b: Any, scales: tuple[Any, Any]) -> tuple[Any, Any]:
        """A and B times their scales, in float64."""

    @abstractmethod
    def _multiply(self, a: Any, b: Any, scales: tuple[Any, Any]) -> Any:
        """The product in bf16, by torch."""

    @abstractmethod
    def _padded_scales(self, scale: Any, rows: int) -> Any:
        """The scales of A with so many rows, the last of which are zeros."""

    @abstractmethod
    def _gathered_scales(self, scale: Any) -> Any:
        """The scales of all rows of A, from those of each rank's."""

    # The peers

    def _peers(self, a: Any, b: Any, scales: tuple[Any, Any], job: Job) -> Iterator[Contestant]:
        if self.around == "none" or self.ranks == 1:
            yield Contestant("scaled_mm", lambda: self._multiply(a[: self.m], b, scales))
        elif self.around == "reduce_scatter":
            yield Contestant("scaled_mm_nccl", self._then_scatter(a, b, scales, job))
            yield Contestant("torch_fused", self._fused(a, b, scales, job))
        else:
            yield Contestant("scaled_mm_nccl", self._gather_first(a, b, scales))
            yield Contestant("torch_fused", self._fused(a, b, scales, job))

    def _then_scatter(self, a: Any, b: Any, scales: tuple[Any, Any], job: Job) -> Callable[[], Any]:
        # NCCL scatters equal shards: rows beyond m are padding, there before the time begins.
        rows, owned = self.ranks * self.plain.shard, self.plain.owned(job.rank)
        padded, left = gemm.padded_rows(a, rows), self._padded_scales(scales[0], rows)
        local = a.new_zeros((self.plain.shard, self.n), dtype=torch().bfloat16)

        def run() -> Any:
            dist().reduce_scatter_tensor(local, self._multiply(padded, b, (left, scales[1])))
            return local[:owned]

        return run

    def _gather_first(self, a: Any, b: Any, scales: tuple[Any, Any]) -> Callable[[], Any]:
        gathered = a.new_zeros((self.ranks * self.plain.shard, self.k))
        # NCCL moves bytes.
        whole, mine = gathered.view(torch().uint8), a.view(torch().uint8)

        def run() -> Any:
            dist().all_gather_into_tensor(whole, mine)
            return self._multiply(gathered[: self.m], b, (self._gathered_scales(scales[0]), scales[1]))

        return run

    @abstractmethod
    def _fused(self, a: Any, b: Any, scales: tuple[Any, Any], job: Job) -> Callable[[], Any]:
        """Torch's operator for both."""

    # Correctness

    def _reference(self, a: Any, b: Any, scales: tuple[Any, Any], job: Job) -> Reference:
        """Some rows of the local shard of C, as `gemm.reference`."""
        left, right = self._applied(a, b, scales)
        found = gemm.reference(self.plain, left, right.T, job)
        return replace(found, rows=replace(found.rows, lost=_KEPT * self._summed / _MMA))

    @property
    @abstractmethod
    def _summed(self) -> int:
        """How many products tensor cores add up."""


@dataclass(frozen=True)
class PerTensor(Scaled):
    """A and B have a scale each, which the kernel gets as one number."""

    @property
    def scalars(self) -> Mapping[str, float]:
        return {"scale": _SCALES[0] * _SCALES[1]}

    def _draw_scales(self, rows: int, job: Job, generator: Any) -> tuple[Any, Any]:
        a, b = (torch().tensor(scale, device=job.place) for scale in _SCALES)
        return a, b

    def _passed(self, scales: tuple[Any, Any]) -> Sequence[Any]:
        return ()

    def _applied(self, a: Any, b: Any, scales: tuple[Any, Any]) -> tuple[Any, Any]:
        return a.double() * scales[0].double(), b.double() * scales[1].double()

    def _multiply(self, a: Any, b: Any, scales: tuple[Any, Any]) -> Any:
        return torch()._scaled_mm(a, b.T, *scales, out_dtype=torch().bfloat16, use_fast_accum=True)

    def _padded_scales(self, scale: Any, rows: int) -> Any:
        return scale

    def _gathered_scales(self, scale: Any) -> Any:
        return scale

    def _fused(self, a: Any, b: Any, scales: tuple[Any, Any], job: Job) -> Callable[[], Any]:
        kind, rows, owned = torch().bfloat16, self.ranks * self.plain.shard, self.plain.owned(job.rank)
        padded = gemm.padded_rows(a, rows) if self.around == "reduce_scatter" else a

        def scatter() -> Any:
            name, shape = gemm.symmetric_group(), [rows, self.n]
            run = torch().ops.symm_mem.fused_scaled_matmul_reduce_scatter
            return run(padded, b.T, *scales, "sum", 0, 0, name, shape, None, None, kind, True)[:owned]

        def gather() -> Any:
            name = gemm.symmetric_group()
            run = torch().ops.symm_mem.fused_all_gather_scaled_matmul
            _, (out,) = run(a, [b.T], scales[0], [scales[1]], 0, name, [None], [None], [kind], [True])
            return out[: self.m]

        return scatter if self.around == "reduce_scatter" else gather

    @property
    def _summed(self) -> int:
        return self.plain.local_k


@dataclass(frozen=True)
class Blocks(Scaled):
    """A has a scale for each row and 128 columns, B for each block of 128 x 128."""

    @property
    def operands(self) -> Sequence[Shape]:
        groups = self.plain.local_k // _BLOCK
        return *super().operands, (groups, self.m), (self.plain.local_n // _BLOCK, groups)

    @property
    def link_bytes(self) -> int:
        """Of A with its scales."""
        scales = 4 * (self.ranks - 1) * self.plain.shard * (self.k // _BLOCK)
        return super().link_bytes + (scales if self.around == "all_gather" else 0)

    @property
    def uneven(self) -> tuple[str, int, int] | None:
        dims = (("N", self.plain.local_n), ("K", self.plain.local_k))
        return self.plain.uneven or next(((name, size, _BLOCK) for name, size in dims if size % _BLOCK), None)

    def _draw_scales(self, rows: int, job: Job, generator: Any) -> tuple[Any, Any]:
        groups = self.plain.local_k // _BLOCK
        shapes = (groups, rows), (self.plain.local_n // _BLOCK, groups)
        a, b = (torch().rand(shape, device=job.place, generator=generator) + 0.5 for shape in shapes)
        return a, b

    def _passed(self, scales: tuple[Any, Any]) -> Sequence[Any]:
        return scales

    def _applied(self, a: Any, b: Any, scales: tuple[Any, Any]) -> tuple[Any, Any]:
        left = scales[0].T.double().repeat_interleave(_BLOCK, 1)
        right = scales[1].double().repeat_interleave(_BLOCK, 0).repeat_interleave(_BLOCK, 1)
        return a.double() * left, b.double() * right

    def _multiply(self, a: Any, b: Any, scales: tuple[Any, Any]) -> Any:
        return torch()._scaled_mm(a, b.T, scales[0].T, scales[1].T, out_dtype=torch().bfloat16)

    def _padded_scales(self, scale: Any, rows: int) -> Any:
        return gemm.padded_rows(scale.T, rows).T.contiguous()

    def _gathered_scales(self, scale: Any) -> Any:
        groups, rows = scale.shape
        gathered = scale.new_zeros((self.ranks, groups, rows))
        dist().all_gather_into_tensor(gathered, scale)
        return gathered.transpose(0, 1).reshape(groups, self.ranks * rows)[:, : self.m]

    def _fused(self, a: Any, b: Any, scales: tuple[Any, Any], job: Job) -> Callable[[], Any]:
        def run() -> Any:
            raise Refused("torch's fused operators take one scale, or scales of rows")

        return run

    @property
    def _summed(self) -> int:
        return _BLOCK
