"""Random operands of all ranks for the operators of `torch.ops.pkc`, and how far results may be off."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.gpu.calls import Failure

SHAPES = (((256, 128), 0), ((100, 72), 0), ((3, 40, 64), 1), ((5, 64), 1))
"""Shapes of A, and the dimension that is gathered or scattered."""


@dataclass(frozen=True)
class Job:
    """This process among the ranks, and random operands of all of them."""

    torch: Any
    device: str
    rank: int
    ranks: int
    group: str

    def draw(self, seed: int, *shape: int, dtype: str = "bfloat16") -> list[Any]:
        """A tensor of each rank; the generator runs on the host, the same in all processes."""
        found: list[Any] = []
        for rank in range(self.ranks):
            generator = self.torch.Generator().manual_seed(1000 * seed + rank)
            drawn = self.torch.randn(*shape, generator=generator, dtype=self.torch.float64)
            found.append(drawn.to(getattr(self.torch, dtype)).to(self.device))
        return found

    def cases(self) -> Iterator[tuple[str, tuple[int, ...], int]]:
        """Element types, shapes of A and dimensions; on GPUs each takes seconds to compile."""
        yield from (("bfloat16", shape, dim) for shape, dim in SHAPES)
        yield from (("float64", shape, dim) for shape, dim in SHAPES if self.device == "cpu")
        yield "float16", *SHAPES[0]

    @property
    def operators(self) -> Any:
        return self.torch.ops.pkc

    def compared(self, found: Any, expected: Any, bound: Any) -> float:
        """The largest error, in units of the bound; NaN counts as wrong."""
        if found.shape != expected.shape:
            raise Failure(f"shape {list(found.shape)} instead of {list(expected.shape)}")
        ratio = ((found.double() - expected).abs() / (bound + 1e-300)).max().item()
        if not ratio <= 1:
            raise Failure(f"error/bound {ratio:.3g}")
        return ratio

    def rounding(self, dtype: Any) -> float:
        """The relative error of rounding to a type, and a little for the error before it."""
        return 1.01 * self.torch.finfo(dtype).eps / 2

    def product(self, left: Any, right: Any) -> tuple[Any, Any]:
        """A product in float64, and the error that it may have before it is rounded."""
        exact = left.double() @ right.double()
        adding = left.shape[-1] * 2.0**-23 if left.dtype != self.torch.float64 else left.shape[-1] * 2.0**-52
        return exact, adding * (left.double().abs() @ right.double().abs())


def all_refused(wrong: Sequence[tuple[str, Callable[[], Any]]]) -> str:
    """Make calls, each of which must be refused with an error that says a text; how many they are."""
    for text, call in wrong:
        try:
            call()
        except (ValueError, RuntimeError) as error:
            if text not in str(error):
                raise Failure(f"{error} does not say: {text}") from None
        else:
            raise Failure(f"not refused: {text}")
    return f"{len(wrong)} calls"


def right_operands(job: Job, inner: int, dtype: str) -> Iterator[tuple[str, int, list[Any]]]:
    """A reduction, what it divides by, and the right operands of all ranks: by rows, and by columns."""
    yield "sum", 1, job.draw(5, inner, 136, dtype=dtype)
    yield "avg", job.ranks, [right.t() for right in job.draw(6, 136, inner, dtype=dtype)]


def summed(job: Job, lefts: Sequence[Any], rights: Sequence[Any]) -> tuple[Any, Any]:
    """The sum over ranks of their products: each contribution is rounded, each sum of them, and an average."""
    total = bound = 0.0
    for left, right in zip(lefts, rights, strict=True):
        exact, error = job.product(left, right)
        total = total + exact
        bound = bound + (job.ranks + 2) * job.rounding(left.dtype) * exact.abs() + 2 * error
    return total, bound


def layers(job: Job, hidden: int, inner: int, dtype: str) -> tuple[list[Any], list[Any]]:
    """The weights of two layers, each rank's shard as `nn.Linear` has it."""
    up, down = job.draw(20, inner, hidden, dtype=dtype), job.draw(21, hidden, inner, dtype=dtype)
    return [w * hidden**-0.5 for w in up], [w * inner**-0.5 for w in down]
