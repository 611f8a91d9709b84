"""The commands of `pkc` for text, of programs and of IR. Each imports what it needs when it runs: help is fast."""

from __future__ import annotations

import click

from pkc.cli.options import EXIT_STATUSES


@click.command("format", epilog=EXIT_STATUSES)
@click.argument("files", nargs=-1, required=True)
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if a file would change.")
def format_command(files: tuple[str, ...], check: bool) -> None:
    """Rewrite FILES (.pk) with the usual spacing. Words, comments and line breaks stay."""
    from pkc.cli.format import execute

    if not execute(files, check=check):
        raise SystemExit(1)


@click.command(epilog=EXIT_STATUSES)
def lsp() -> None:
    """Serve an editor: diagnostics, hover, completion and formatting of .pk files (needs the extra `editor`)."""
    from pkc.cli.server import execute

    execute()


@click.command(
    epilog=EXIT_STATUSES,
    options_metavar="[-h]",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []},
)
@click.argument("arguments", nargs=-1, metavar="[FILE] [ARGUMENTS]...", type=click.UNPROCESSED)
@click.pass_context
def opt(context: click.Context, arguments: tuple[str, ...]) -> None:
    """Run single passes over IR; `pkc opt -h` lists them.

    \b
    Example:
      pkc compile examples/gemm_rs.pk | pkc opt -p canonicalize
    """
    if arguments == ("--help",):
        click.echo(context.get_help())
        return
    from pkc.cli.opt import main as opt_main

    raise SystemExit(opt_main(list(arguments)))
