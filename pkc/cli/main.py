"""The `pkc` command: its commands, and what becomes of their errors."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import click

from pkc.cli import commands, commands_on_files, commands_on_gpus
from pkc.cli.interrupt import never_lost
from pkc.cli.options import EXIT_STATUSES
from pkc.version import VERSION


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; raises nothing."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
    try:
        with never_lost():
            return _reported(argv)
    except OSError:
        # Nobody can be told: stderr is full, or closed.
        _discard(sys.stderr)
        return 1


def _reported(argv: Sequence[str] | None) -> int:
    try:
        status = _main(argv)
        if not sys.stdout.closed:  # as the language server leaves it
            sys.stdout.flush()
        return status
    except click.ClickException as error:
        error.show()
        if "unexpected extra argument" in error.message and "=" in error.message:
            click.echo("Several values of one option have commas between them: --set M=1024,N=512", err=True)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return 130
    except BrokenPipeError:
        # The reader of the output has left.
        _discard(sys.stdout)
        return 1
    except Exception as error:
        from pkc import console

        if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
            _discard(sys.stdout)
            error = console.unwritable("<stdout>", error)
        console.failure(error)
        return 1


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What a write to an open file may fail with. Those to files that an option names say which."""


def _discard(stream: TextIO) -> None:
    """What is left in a stream goes nowhere; else the interpreter would write it at its end, and fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _main(argv: Sequence[str] | None) -> int:
    try:
        status = cli.main(argv, prog_name="pkc", standalone_mode=False)
    except SystemExit as end:
        status = end.code
    return status if isinstance(status, int) else 0 if status is None else 1


@click.group(epilog=EXIT_STATUSES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, message="pkc %(version)s")
def cli() -> None:
    """Compile and run small tile programs over arrays that are spread across GPUs.

    \b
    Example:
      pkc run examples/gemm_rs.pk --ranks 8 --set M=1024,N=512,K=512
    """


for _command in (
    commands.compile_command,
    commands.run,
    commands.check,
    commands.timeline,
    commands.explain,
    commands_on_gpus.trace,
    commands_on_gpus.calibrate,
    commands_on_gpus.tune,
    commands_on_gpus.bench,
    commands_on_files.format_command,
    commands_on_files.lsp,
    commands_on_files.opt,
):
    cli.add_command(_command)
