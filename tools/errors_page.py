"""Writes docs/errors.md, the list of all diagnostics: `python -m tools.errors_page`."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path

import pkc
from pkc.diagnostics import REGISTRY, Diagnostic
from tools import told

PAGE = Path(__file__).parents[1] / "docs" / "errors.md"
HEAD = """\
# Diagnostics

<!-- Written by `python -m tools.errors_page`; do not edit. -->

Every diagnostic of pkc has a code that keeps its meaning. Names in braces are filled in with what the program
says. For each code, `tests/errors` has a program that provokes it and the exact text that pkc prints.
"""


OTHERS = ("pkc.__main__", "pkc.nn", "pkc.torch", "pkc.editor")
"""Modules that define no diagnostics; all but the first need torch or pygls."""


def registry() -> dict[str, type[Diagnostic]]:
    """Every kind of diagnostic by code, whichever module defines it."""
    importable = (module for module in pkgutil.iter_modules(pkc.__path__, "pkc.") if module.name not in OTHERS)
    for module in importable:
        found = importlib.import_module(module.name)
        for inner in pkgutil.walk_packages(getattr(found, "__path__", ()), f"{module.name}."):
            importlib.import_module(inner.name)
    return dict(sorted((code, kind) for code, kind in REGISTRY.items() if kind.__module__.startswith("pkc.")))


def page() -> str:
    """The text of docs/errors.md."""
    return "\n".join([HEAD, *(_entry(code, kind) for code, kind in registry().items())])


def _entry(code: str, kind: type[Diagnostic]) -> str:
    lines = [f"## {code}: {kind.title}", "", " ".join(inspect.cleandoc(kind.__doc__ or "").split()), ""]
    if kind.severity != "error":
        lines[2] = f"({kind.severity}) {lines[2]}"
    lines += [f"- {name}: {text}" for name, text in (("note", kind.note), ("help", kind.help)) if text]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    told.words(__doc__)
    PAGE.write_text(page(), encoding="utf-8")
