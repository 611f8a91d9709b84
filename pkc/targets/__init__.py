"""What pkc compiles for, by name. A target is one object (`pkc/targets/target.py`).

docs/targets.md says how to add one. This module imports nothing of the rest, so that the command line can ask for
names at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pkc.targets.target import Target

DEFAULT = "sm_90a"
"""The target of a kernel that names none."""

BUILT_IN = {"sm_90a": "sm_90a"}
"""Packages beside this file, each with its `TARGET`, and the name of their machine code; all others come from
`register`."""

_registered: dict[str, Target] = {}


def names() -> tuple[str, ...]:
    """The targets that there are."""
    return tuple(dict.fromkeys((*BUILT_IN, *_registered)))


def find(name: str) -> Target | None:
    """The target of that name, if there is one."""
    if name in BUILT_IN and name not in _registered:
        _registered[name] = importlib.import_module(f"{__name__}.{name}").TARGET
    return _registered.get(name)


def code_of(name: str) -> str:
    """The name of the machine code of a target that there is; one that is built in is not imported for it."""
    found = BUILT_IN.get(name) or find(name)
    assert found is not None
    return found if isinstance(found, str) else found.code


def register(target: Target) -> None:
    """Let pkc compile for one more target. Raises `ValueError` if its name is that of another one."""
    if find(target.name) not in (None, target):
        raise ValueError(f"there is another target called {target.name}")
    _registered[target.name] = target
