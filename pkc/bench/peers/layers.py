"""The families of fused layers, on each rank by itself: SwiGLU, and an MLP of two phases."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pkc.bench.peers import gemm
from pkc.bench.peers.contest import Contestant
from pkc.bench.peers.gemm import Matmul, Sizes
from pkc.bench.peers.problem import Case, Shape
from pkc.bench.peers.ranks import Job, torch
from pkc.bench.peers.reference import UNIT, Reference, Rows, sample

_SLOPE = 1.1
"""More than the steepest slope of silu."""


@dataclass(frozen=True)
class Layers(Sizes, ABC):
    """Two GEMMs of m x n x k multiplications each, with what lies between or behind them; by each rank alone."""

    m: int
    n: int
    k: int
    ranks: int

    FORM: ClassVar[str] = gemm.FORM

    @classmethod
    def parse(cls, text: str, exchange: str, ranks: int) -> Self | None:
        """The problem of a size as the command line has it; `None` if it is no size."""
        sizes = gemm.parse_sizes(text)
        return cls(*sizes, ranks) if sizes is not None and exchange == "none" else None

    @property
    def exchange(self) -> str:
        return "none"

    @property
    def flops(self) -> float:
        """Of both GEMMs."""
        return 4.0 * self.m * self.n * self.k

    @property
    def link_bytes(self) -> int:
        return 0

    @property
    @abstractmethod
    def operands(self) -> Sequence[Shape]: ...

    @property
    @abstractmethod
    def result(self) -> Shape: ...

    @abstractmethod
    def alone(self) -> Sequence[Matmul]:
        """The two GEMMs, one after the other."""

    def draw(self, job: Job) -> Case:
        """Normally distributed inputs; weights such that what is computed with them is of the size of 1."""
        generator = torch().Generator(device=job.place).manual_seed(job.rank)
        options = {"device": job.place, "dtype": torch().bfloat16, "generator": generator}
        x, w, v = (torch().randn(shape, **options) for shape in self.operands)
        for weights in (w, v):
            weights /= math.sqrt(weights.shape[0])
        rows = self._rows(x, w, v, sample(self.m))
        reference = Reference(job, self.result, rows)
        return Case(self, (x, w, v), reference, (Contestant("cublas_torch", lambda: self._unfused(x, w, v)),))

    @abstractmethod
    def _rows(self, x: Any, w: Any, v: Any, at: Sequence[int]) -> Rows:
        """Some rows of the result. What lies between two of torch's operations is rounded to bf16."""

    @abstractmethod
    def _unfused(self, x: Any, w: Any, v: Any) -> Any:
        """The result, by torch's operations one after the other."""


@dataclass(frozen=True)
class Swiglu(Layers):
    """Y[m, n] = silu(X @ W) * (X @ V) for X[m, k] and W, V[k, n]."""

    @property
    def operands(self) -> Sequence[Shape]:
        weights = (self.k, self.n)
        return (self.m, self.k), weights, weights

    @property
    def result(self) -> Shape:
        return self.m, self.n

    def alone(self) -> Sequence[Matmul]:
        return (Matmul("none", self.m, self.n, self.k, self.ranks),) * 2

    def _rows(self, x: Any, w: Any, v: Any, at: Sequence[int]) -> Rows:
        gate, up = (x[at].double() @ weights.double() for weights in (w, v))
        silu = gate * gate.sigmoid()
        exact = silu * up
        # Rounded are both GEMMs, silu and the result.
        bound = UNIT * (_SLOPE * gate.abs() * up.abs() + 3 * exact.abs())
        return Rows(0, at, exact, bound, roundings=4)

    def _unfused(self, x: Any, w: Any, v: Any) -> Any:
        return torch().nn.functional.silu(x @ w, inplace=True).mul_(x @ v)


@dataclass(frozen=True)
class Mlp(Layers):
    """Y[m, k] = relu(X @ W) @ V for X[m, k], W[k, n] and V[n, k]."""

    @property
    def operands(self) -> Sequence[Shape]:
        return (self.m, self.k), (self.k, self.n), (self.n, self.k)

    @property
    def result(self) -> Shape:
        return self.m, self.k

    def alone(self) -> Sequence[Matmul]:
        return Matmul("none", self.m, self.n, self.k, self.ranks), Matmul("none", self.m, self.k, self.n, self.ranks)

    def _rows(self, x: Any, w: Any, v: Any, at: Sequence[int]) -> Rows:
        hidden, second = (x[at].double() @ w.double()).relu(), v.double()
        exact = hidden @ second
        bound = UNIT * (hidden @ second.abs() + exact.abs())
        return Rows(0, at, exact, bound, roundings=2)

    def _unfused(self, x: Any, w: Any, v: Any) -> Any:
        return (x @ w).relu_() @ v
