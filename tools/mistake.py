"""A mistake that is made in a copy of pkc, and the test that must catch it (`tools.weakened`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mistake:
    """`old` becomes `new` in a file of pkc; the tests of `test` that `-k` selects must then fail."""

    what: str
    file: str
    old: str
    new: str
    test: str
    select: str = ""
