"""Tables and a plot from the files that `pkc bench --json` writes.

    python -m pkc.bench.report bench/results/*.json --readme README.md --plot bench/results.png

Without options it prints the tables. The plot needs the extra `bench`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import click

from pkc import console
from pkc.bench import errors
from pkc.bench.record import SCHEMA
from pkc.bench.tables import legend, table
from pkc.diagnostics import PkcError
from pkc.location import NOWHERE

BEGIN = "<!-- written by `make bench-report` -->"
END = "<!-- end -->"
NOTHING = "No measurement is kept yet."


def read(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """The records of several files. Raises `PkcError`."""
    return [_read(path) for path in paths]


def _read(path: Path) -> dict[str, Any]:
    try:
        record: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PkcError(errors.NoResults(NOWHERE, str(path), str(error))) from None
    found = cast("dict[str, Any]", record) if isinstance(record, dict) else {}
    if found.get("schema") != SCHEMA:
        raise PkcError(errors.NoResults(NOWHERE, str(path), f"it is not of schema {SCHEMA}"))
    return found


def section(records: Sequence[dict[str, Any]]) -> str:
    """The text between the two marks of a page."""
    return f"{legend(records)}\n\n{table(records)}" if records else NOTHING


def insert(page: str, text: str) -> str:
    """The page with `text` between its marks. Raises `ValueError` if it has none."""
    head, _, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not end:
        raise ValueError(f"there is no `{BEGIN}` that `{END}` follows")
    return f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}"


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--readme", type=click.Path(path_type=Path, exists=True), help="Put the tables between its marks.")
@click.option("--plot", "picture", type=click.Path(path_type=Path), help="Draw the shares of the limit, as PNG.")
def main(files: Sequence[Path], readme: Path | None, picture: Path | None) -> None:
    """Make tables and a plot from results of `pkc bench`."""
    try:
        records = read(files)
    except PkcError as error:
        console.failure(error)
        sys.exit(1)
    text = section(records)
    if readme is None:
        click.echo(text)
    else:
        readme.write_text(insert(readme.read_text(encoding="utf-8"), text), encoding="utf-8")
    if picture is not None and records:
        from pkc.bench.plot import draw

        draw(records, picture)


if __name__ == "__main__":
    main()
