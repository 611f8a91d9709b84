"""What tests of your own kernels call, under pytest or any other runner.

from pkc.testing import assert_right

@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_mine(ranks):
    assert_right(mine, ranks=ranks, M=200, N=72, K=40)
"""

from __future__ import annotations

from typing import Any

from pkc.driver.simulated import Simulated
from pkc.kernels import Kernel


def assert_right(
    kernel: Kernel, *, ranks: int = 2, seed: int | None = None, orders: int = 4, explored: int = 50, **given: Any
) -> Simulated:
    """Simulate a kernel and check its protocol; what was simulated.

    `given` is as for `kernel.simulate`: arrays, scalars, constants and dimensions by name; what is missing is drawn.
    Fails with the report if a result is outside its bound, of pkc's reference or of the one that `@pkc.kernel` names,
    if an element is left unwritten that should not be, or if the protocol is wrong in one of so many `orders` or in
    an order of a small instance (at most `explored` runs; none of either leaves the check out). Raises `PkcError`.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    found = kernel.simulate(ranks=ranks, seed=seed, **given)
    if not found.ok:
        raise AssertionError(f"\n{found}")
    if orders or explored:
        sizes = {name: value for name, value in given.items() if isinstance(value, int | float | bool)}
        named = {name: size for name, size in {**found.dims, **sizes}.items() if name not in found.inputs}
        checked = kernel.check(ranks=ranks, orders=orders, explored=explored, **named)
        if not checked.ok:
            raise AssertionError(f"\n{checked}")
    return found
