"""What calls of a kernel need to know of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from pkc.codegen.artifact import ArrayParameter, Interface
from pkc.codegen.stored import tuples
from pkc.driver.lengths import Lengths


@dataclass(frozen=True)
class Warned:
    """A warning about a program: what it says, and of which line."""

    text: str
    file: str
    line: int


@dataclass(frozen=True)
class Outline:
    """A kernel with its constants and its schedule, before its sizes are known."""

    interface: Interface
    sets_tiles: bool
    """Whether its schedule sets tiles, so that none is chosen for sizes."""
    lengths: Lengths
    warnings: tuple[Warned, ...]

    def pack(self) -> bytes:
        """Bytes that `unpack` reads."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def unpack(cls, data: bytes) -> Outline:
        """The outline that `pack` was called for."""
        found: dict[str, Any] = tuples(json.loads(data))
        about: dict[str, Any] = found["interface"]
        arrays = tuple(ArrayParameter(**array) for array in about.pop("arrays"))
        warnings = tuple(Warned(**warned) for warned in found["warnings"])
        return cls(Interface(**about, arrays=arrays), found["sets_tiles"], Lengths(**found["lengths"]), warnings)
