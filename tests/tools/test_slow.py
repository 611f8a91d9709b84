"""Which cases `make test` leaves out."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from tests.sweeps import spread
from tools import slow

TESTS = Path(__file__).parents[1]

LOG = """
============================= slowest durations ==============================
8.00s call     tests/a.py::test_alone
2.00s call     tests/a.py::test_sizes[64]
1.50s setup    tests/a.py::test_sizes[65]
0.50s call     tests/a.py::test_sizes[65]
2.00s call     tests/a.py::test_sizes[a b]
0.40s call     tests/b.mlir::RUN1

(12 durations < 0.1s hidden.)
"""


def test_times_of_a_log() -> None:
    assert slow.times(LOG) == {
        "tests/a.py::test_alone": [8.0],
        "tests/a.py::test_sizes": [2.0, 2.0, 2.0],
        "tests/b.mlir::RUN1": [0.4],
    }


@pytest.mark.parametrize(("seconds", "sizes"), [(2.4, 1), (4.5, 2), (6.3, 2), (6.5, 3)])
def test_as_many_cases_stay_as_fit(seconds: float, sizes: int) -> None:
    """One of each function at least, but none of what takes too long alone."""
    found = slow.chosen(slow.times(LOG), seconds)
    assert found.pop("tests/a.py::test_alone") == 0
    assert found == ({} if sizes == 3 else {"tests/a.py::test_sizes": sizes})


def test_functions_that_leave_cases_out_exist() -> None:
    lines = slow.KEPT.read_text(encoding="utf-8").splitlines()
    assert lines
    for share, test in map(str.split, lines):
        path, _, function = test.partition("::")
        text = (TESTS.parent / path).read_text(encoding="utf-8")
        assert f"def {function.rpartition('::')[2]}(" in text or path.endswith(".mlir"), test
        assert 0 <= Fraction(share) < 1


def test_cases_that_stay_are_spread_evenly() -> None:
    assert spread(3, 7) == [False, False, True, False, True, False, True]
    assert spread(0, 2) == [False, False]
    assert all(sum(spread(kept, total)) == min(kept, total) for total in range(1, 20) for kept in range(total + 3))


def test_what_is_listed_is_marked(request: pytest.FixtureRequest) -> None:
    """And nothing else, of what this process has collected."""
    shares = dict(line.split()[::-1] for line in slow.KEPT.read_text(encoding="utf-8").splitlines())
    found: dict[str, list[bool]] = {}
    for item in request.session.items:
        found.setdefault(item.nodeid.partition("[")[0], []).append(item.get_closest_marker("slow") is not None)
    for function, marked in found.items():
        assert not any(marked) or function in shares
