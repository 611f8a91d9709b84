"""Modules of `pkc.torch` without its package, which needs torch."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pkc

FOLDER = Path(pkc.__file__).parent / "torch"


def module_of(name: str) -> ModuleType:
    """A new module from the file of this name. What it imports must be there, or stand in `sys.modules`."""
    spec = importlib.util.spec_from_file_location(f"{name}_without_torch", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there for what their annotations name
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]
    return module
