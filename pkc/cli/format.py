"""`pkc format`: rewrites `.pk` files with the usual spacing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from pkc import console
from pkc.editor.format import formatted
from pkc.frontend.files import read_source


def execute(names: Sequence[str], *, check: bool) -> bool:
    """Rewrite files, or with `check` only name those that would change. False if there are any to name. Raises
    `PkcError` for a file that is no program; those before it are written."""
    good = True
    for name in names:
        source = read_source(name, ".pk")
        text = formatted(source.text, name)
        if text == source.text:
            continue
        click.echo(f"{name} would change" if check else name)
        if check:
            good = False
            continue
        with console.writing(name):
            Path(name).write_text(text, encoding="utf-8")
    return good
