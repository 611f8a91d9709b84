"""Files of programs: read, and refused if they are too large or no text."""

from __future__ import annotations

import os
from pathlib import Path

from pkc.diagnostics import PkcError
from pkc.frontend import errors
from pkc.location import NOWHERE, Source

MAX_BYTES = 1 << 20
"""The most that a source may have."""


def read_source(path: str | Path, extension: str = "") -> Source:
    """The text of a file; its name must end in `extension`."""
    shown = os.fspath(path)
    data = _read_bytes(Path(path), shown, extension)
    if len(data) > MAX_BYTES:
        raise PkcError(errors.FileTooLarge(NOWHERE, shown, MAX_BYTES))
    zero = data.find(b"\0")
    if zero >= 0:
        raise PkcError(errors.BinaryFile(NOWHERE, shown, zero))
    try:
        return Source(shown, data.decode("utf-8-sig")).remember()
    except UnicodeDecodeError as error:
        # The decoder does not count a byte order mark.
        offset = error.start + (len(data) - len(error.object))
        line = data.count(b"\n", 0, offset) + 1
        raise PkcError(errors.NotUtf8(NOWHERE, shown, offset, data[offset], line)) from None


def _read_bytes(path: Path, shown: str, extension: str) -> bytes:
    """At most one byte more than a source may have."""
    try:
        if path.is_dir():
            raise PkcError(errors.FileIsDirectory(NOWHERE, shown))
        if not path.exists():
            raise PkcError(errors.FileNotFound(NOWHERE, shown))
        if extension and path.suffix != extension:
            raise PkcError(errors.WrongExtension(NOWHERE, shown, extension))
        if not path.is_file():
            raise PkcError(errors.FileUnreadable(NOWHERE, shown, "not a regular file"))
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise PkcError(errors.FileUnreadable(NOWHERE, shown, error.strerror or str(error))) from None
    except ValueError as error:
        raise PkcError(errors.FileUnreadable(NOWHERE, repr(shown), str(error))) from None
