"""Which files a `.pk` file imports from, found without parsing it: the compilation cache asks each time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

_LINE = re.compile(r"^from\b([^\n#]*?)\bimport\b", re.MULTILINE)
"""Every line of imports, and perhaps lines that the parser will refuse."""


def imported_path(importing: str | Path, module: Sequence[str]) -> Path:
    """The file that `from module import ...` means in the file at `importing`; the words of `module` are folders and a
    name."""
    return Path(importing).parent.joinpath(*module).with_suffix(".pk")


def imported_texts(path: str | Path, text: str) -> dict[str, bytes] | None:
    """The files that a program is made of beside its own text, by path; `None` if one of them cannot be read."""
    found: dict[str, bytes] = {}
    left = [(Path(path), text)]
    while left:
        importing, content = left.pop()
        for match in _LINE.finditer(content):
            module = "".join(match[1].split()).split(".")
            file = imported_path(importing, module)
            if str(file) in found:
                continue
            try:
                found[str(file)] = file.read_bytes()
                left.append((file, found[str(file)].decode("utf-8-sig")))
            except (OSError, ValueError):
                return None
    return found
