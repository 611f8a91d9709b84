"""Ranks that a process drives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Rank:
    """A rank that this process drives: its GPU, and a stream and an event there."""

    rank: int
    device: int
    context: Any
    stream: int
    event: Any
    turn: Any
    """The event that a launch waits for whose turn it is (`pkc.runtime.turns`)."""
    sms: int
    """SMs that its kernels may fill: all of the GPU, or its share if it is a virtual rank."""


@dataclass(frozen=True)
class Side:
    """One more stream of a rank, and its event."""

    stream: int
    event: Any
