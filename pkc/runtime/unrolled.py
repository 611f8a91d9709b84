"""What copy engines do in the first launch of a process, on disk: one that begins as another did imports no IR.

What is kept are numbers and names, by the text of the roles and the sizes; the text itself is IR, which takes a
quarter of a second to import.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

from pkc import cache
from pkc.dialect.blocks import Block
from pkc.runtime.steps import Box, Copy, Raise, Reset, Section, Step, Wait

if TYPE_CHECKING:
    from pkc.runtime.engines import Engines

Roles: TypeAlias = list[list[Section]]
"""The sections of each role."""


class Unrolled:
    """The copy engine roles of a kernel, as `Artifact.engines` has them."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._first: tuple[object, ...] | None = None
        """The sizes of the first launch."""
        self.count = int(self._kept("count") or self._keep("count", str(self._engines.count)))
        """How many roles there are."""

    def sections(self, rank: int, dims: Mapping[str, int], scalars: Mapping[str, int | float]) -> Roles:
        """The sections of each role, in order. `dims` has `ranks` too."""
        sizes = *dims.items(), *scalars.items()
        if self._first is None:
            self._first = sizes
        if sizes != self._first:
            return self._engines.sections(rank, dims, scalars)
        name = repr((rank, sizes))
        known = self._kept(name)
        if known is not None:
            roles = json.loads(known)
            return [[[[*map(_step, strand)] for strand in section] for section in role] for role in roles]
        found = self._engines.sections(rank, dims, scalars)
        self._keep(name, json.dumps(found, default=_plain))
        return found

    @cached_property
    def _engines(self) -> Engines:
        from pkc.runtime.engines import Engines

        return Engines(self._text)

    def _key(self, name: str) -> str:
        return cache.key("copy engines 1", cache.compiler(), self._text, name)

    def _kept(self, name: str) -> str | None:
        found = cache.get(self._key(name))
        return None if found is None else found.decode()

    def _keep(self, name: str, content: str) -> str:
        cache.put(self._key(name), content.encode())
        return content


def _plain(step: Step) -> list[Any]:
    match step:
        case Copy(source, target):
            return ["copy", *[[box.array, list(box.indices.items())] for box in (source, target)]]
        case Wait(signal, indices, value):
            return ["wait", signal, indices, value]
        case Raise(signal, indices, rank, value):
            return ["raise", signal, indices, rank, value]
        case Reset(signal):
            return ["reset", signal]
        case _:
            assert_never(step)


def _step(plain: list[Any]) -> Step:
    match plain:
        case ["copy", source, target]:
            return Copy(_box(*source), _box(*target))
        case ["wait", signal, indices, value]:
            return Wait(signal, tuple(indices), value)
        case ["raise", signal, indices, rank, value]:
            return Raise(signal, tuple(indices), rank, value)
        case [_, signal]:
            return Reset(signal)
        case _:
            raise AssertionError(plain)


def _box(array: str, indices: list[tuple[int, Any]]) -> Box:
    return Box(array, {axis: Block(*index) if isinstance(index, list) else index for axis, index in indices})
