"""What a tool is told on the command line; `--help` says what it does, and does nothing."""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter


def words(about: str | None, *flags: str, rest: str = "") -> list[str]:
    """The words behind the command: those of `flags` that are given, and what is named `rest` in the help, if a tool
    takes that."""
    parser = ArgumentParser(description=about, formatter_class=RawDescriptionHelpFormatter)
    for flag in flags:
        parser.add_argument(flag, dest="given", action="append_const", const=flag)
    if rest:
        parser.add_argument("rest", metavar=rest, nargs="*", default=[])
    found = vars(parser.parse_args())
    return [*(found.get("given") or ()), *found.get("rest", ())]
