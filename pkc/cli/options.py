"""Options that several commands have. Imports nothing of the compiler, so that help is fast."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import click

EXIT_STATUSES = """\b
Exit status:
  0  all is well
  1  the program has errors, or its result is wrong
  2  the command line could not be understood
"""


class Whole(click.IntRange):
    """A whole number, in ASCII digits as all numbers of the language: Python reads those of other scripts too."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number. Fails as click does."""
        if not str(value).isascii():
            self.fail(f"{value!r} is not a valid integer range.", param, ctx)
        return super().convert(value, param, ctx)


SEED = click.option("--seed", type=Whole(0, 2**32 - 1), default=0, show_default=True, help="Draws the inputs.")


class OnFile(click.Command):
    """A command that reads FILE, and refuses to write over it, whatever its options `output` (a file) and `outputs`
    (`NAME=FILE`) say."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Raises `PkcError`."""
        pairs: tuple[str, ...] = ctx.params.get("outputs") or ()
        for path in (ctx.params.get("output"), *(pair.partition("=")[2].strip() for pair in pairs)):
            if path and _is_same(path, ctx.params["file"]):
                _refuse(path)
        return super().invoke(ctx)


def _is_same(path: str, file: str) -> bool:
    try:
        return Path(path).samefile(file)
    except (OSError, ValueError):  # one of them does not exist
        return False


def _refuse(path: str) -> NoReturn:
    from pkc.console import OutputUnwritable
    from pkc.diagnostics import PkcError
    from pkc.location import NOWHERE

    hint = "name another file for what the command writes"
    raise PkcError(OutputUnwritable(NOWHERE, path, "it is the program that the command reads", hint))


@dataclass(frozen=True)
class Asked:
    """The kernel that a command runs, and how; texts as on the command line."""

    file: str
    ranks: int
    settings: tuple[str, ...]
    kernel: str | None
    schedule: tuple[str, ...]


def on_ranks(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Asked`, which is its first argument."""

    @click.argument("file")
    @click.option("--ranks", type=Whole(min=1), default=2, show_default=True, help="How many ranks (GPUs).")
    @click.option(
        "--set", "settings", metavar="NAME=V,...", multiple=True, help="Values of dimensions, constants and scalars."
    )
    @click.option("--kernel", metavar="NAME", help="The kernel, if FILE has several.")
    @click.option("--schedule", metavar="K=V,...", multiple=True, help="How to run it; wins over the text.")
    @functools.wraps(command)
    def with_options(
        file: str, ranks: int, settings: tuple[str, ...], kernel: str | None, schedule: tuple[str, ...], **others: Any
    ) -> None:
        command(Asked(file, ranks, settings, kernel, schedule), **others)

    return with_options
