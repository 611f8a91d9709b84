"""What passes changed: the IR before and after each of them, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from html import escape
from pathlib import Path

_AROUND = 2
"""Lines that are the same, shown around those that differ."""

STYLE = (
    "<style>.sides{width:100%;table-layout:fixed;font:11px/1.35 ui-monospace,monospace}.sides td{white-space:pre-wrap;"
    "overflow-wrap:anywhere;padding:0 .5em;border:0}.gone{background:#fbe3e0}.new{background:#e2f2e4}"
    ".cut td{color:#999}</style>"
)


def changes(folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """The passes that changed anything, with the lines before and after: from the files of `--dump`."""
    before: list[str] | None = None
    for path in sorted(folder.glob("*.mlir")):
        after = path.read_text(encoding="utf-8").splitlines()
        if before is not None and before != after:
            yield path.stem.partition("-")[2], before, after
        before = after


def html(folder: Path) -> str:
    """A fold for each pass that changed anything."""
    folds = (
        f"<details><summary><code>{escape(name)}</code></summary>{sides(before, after)}</details>"
        for name, before, after in changes(folder)
    )
    return STYLE + "\n".join(folds)


def sides(before: Sequence[str], after: Sequence[str]) -> str:
    """A table: what differs, with a few lines around it."""
    rows: list[str] = []
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(_AROUND):
        if rows:
            rows.append('<tr class="cut"><td>...</td><td>...</td></tr>')
        for tag, i, j, k, m in group:
            left, right = before[i:j], after[k:m]
            for place in range(max(len(left), len(right))):
                rows.append(_row(tag, left[place : place + 1], right[place : place + 1]))
    return f'<table class="sides">{"".join(rows)}</table>'


def _row(tag: str, left: Sequence[str], right: Sequence[str]) -> str:
    gone = ' class="gone"' if tag != "equal" and left else ""
    new = ' class="new"' if tag != "equal" and right else ""
    return f"<tr><td{gone}>{escape(''.join(left))}</td><td{new}>{escape(''.join(right))}</td></tr>"
