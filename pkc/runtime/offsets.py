"""Offsets in the symmetric heap: the same calls in the same order give the same offsets on every rank."""

from __future__ import annotations

ALIGNMENT = 1024


class Offsets:
    """Free and used ranges of `size` bytes from 0 on; the lowest range that is large enough is taken."""

    def __init__(self) -> None:
        self.size = 0
        self._free: list[tuple[int, int]] = []
        self._used: dict[int, int] = {}

    @property
    def used(self) -> int:
        """How many bytes are in use."""
        return sum(self._used.values())

    def extend(self, count: int) -> None:
        """Add `count` bytes at the end."""
        self._insert(self.size, count)
        self.size += count

    def shrink(self, end: int) -> bool:
        """Remove all from `end` on, if it is free."""
        start, length = self._free[-1] if self._free else (self.size, 0)
        if start > end or start + length < self.size:
            return False
        self._free[-1:] = [(start, end - start)] if start < end else []
        self.size = end
        return True

    def lacking(self, count: int) -> int:
        """By how many bytes the end must grow so that `count` bytes fit; 0 if they do."""
        count = _rounded(count)
        if any(length >= count for _, length in self._free):
            return 0
        start, length = self._free[-1] if self._free else (self.size, 0)
        return count - length if start + length == self.size else count

    def take(self, count: int) -> int:
        """Reserve `count` bytes and return their start; there must be room."""
        count = _rounded(count)
        at, (start, length) = next((at, free) for at, free in enumerate(self._free) if free[1] >= count)
        self._free[at : at + 1] = [(start + count, length - count)] if length > count else []
        self._used[start] = count
        return start

    def give(self, start: int) -> None:
        """Free the range that `take` returned."""
        self._insert(start, self._used.pop(start))

    def _insert(self, start: int, length: int) -> None:
        """Add a free range, joined with its neighbours."""
        ranges = sorted([*self._free, (start, length)])
        joined: list[tuple[int, int]] = []
        for begin, count in ranges:
            if joined and sum(joined[-1]) == begin:
                begin, count = joined[-1][0], joined.pop()[1] + count
            joined.append((begin, count))
        self._free = joined


def _rounded(count: int) -> int:
    return max(1, -(-count // ALIGNMENT)) * ALIGNMENT
