"""What compiling a program gave, in the cache, by the program's text and pkc's own. Imports no compiler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from pkc import cache
from pkc.frontend import tree
from pkc.targets import BUILT_IN

Number: TypeAlias = int | float | bool


def key_of(
    program: tree.Program,
    kernel: str,
    constants: Mapping[str, Number] | None,
    schedule: Mapping[str, str] | None,
    target: str,
) -> str:
    """A key of a kernel with what it is compiled with; other places of the same text count too."""
    given = repr((kernel, sorted((constants or {}).items()), sorted((schedule or {}).items())))
    return cache.key("program 1", cache.compiler(), target, repr(program), *tree.places(program), given)


def get(key: str, target: str) -> bytes | None:
    """What is kept; nothing for targets that are not built in: keys have no sources of them."""
    return cache.get(key) if target in BUILT_IN else None


def put(key: str, content: bytes, target: str) -> None:
    """Keep it, if the target is built in."""
    if target in BUILT_IN:
        cache.put(key, content)
