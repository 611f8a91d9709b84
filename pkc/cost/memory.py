"""The time of device memory, for estimates and predicted time lines alike."""

from __future__ import annotations

from pkc.targets.target import Target


def memory_time(read: float, written: float, target: Target) -> float:
    """Nanoseconds that memory of a GPU takes for bytes of which the L2 cache has none: what is read for the first time,
    and what is stored, share its bandwidth."""
    return (read + written) / target.rates.memory_bytes
