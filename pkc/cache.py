"""Results of slow computations on disk, by content: a folder of files that any process may read, add and drop.

`$PKC_CACHE_DIR`, or `pkc` in the user's cache folder (`$XDG_CACHE_HOME`, else `~/.cache`). A file appears whole, by
being renamed, and carries a digest of its name and content: one that a crash has cut short, or that belongs under
another name, counts as missing. When the folder grows past `MOST_BYTES`, the files that have not been used for longest
go. A folder that cannot be written to means no cache, never an error.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

MOST_BYTES = 512 << 20
ROOT = Path(__file__).parent
"""Where pkc's sources are."""
_DIGEST = 32
_PACKAGES = ("xdsl", "lark", "numpy", "ml_dtypes")


def folder() -> Path:
    """Where the files are; the folder need not exist."""
    chosen = os.environ.get("PKC_CACHE_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "pkc"


def key(*inputs: bytes | str) -> str:
    """A name for what depends on `inputs` alone; equal bytes divided in another way give another name."""
    digest = hashlib.sha256()
    for given in inputs:
        data = given.encode() if isinstance(given, str) else given
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def compiler() -> str:
    """A key of what compiles: pkc's sources, which do not change in a process, Python, and the packages that pkc
    computes with."""
    return _compiler(ROOT)


@functools.cache
def _compiler(sources: Path) -> str:
    import importlib.metadata

    versions = [sys.version, *map(importlib.metadata.version, _PACKAGES)]
    files = (path for path in sorted(sources.rglob("*")) if path.suffix in (".py", ".lark"))
    return key(*versions, *(part for path in files for part in (str(path.relative_to(sources)), path.read_bytes())))


def get(name: str) -> bytes | None:
    """The content kept under this key, or `None`; marks it as used."""
    path = folder() / name
    try:
        data = path.read_bytes()
    except OSError:
        return None
    content = data[_DIGEST:]
    if _digest(name, content) != data[:_DIGEST]:
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return content


def put(name: str, content: bytes) -> None:
    """Keep `content` under this key, for all processes of the user."""
    with contextlib.suppress(OSError):
        _write(folder(), name, _digest(name, content) + content)
        _trim(folder())


def _digest(name: str, content: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\0" + content).digest()


def _write(place: Path, name: str, data: bytes) -> None:
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, path = tempfile.mkstemp(prefix=".", dir=place)
    temporary = Path(path)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        temporary.replace(place / name)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _trim(place: Path) -> None:
    files = list(_files(place))
    excess = sum(size for _, size, _ in files) - MOST_BYTES
    for _, size, path in sorted(files):
        if excess <= 0:
            return
        path.unlink(missing_ok=True)
        excess -= size


def _files(place: Path) -> Iterable[tuple[int, int, Path]]:
    """Time of last use, size and path of each file; other processes drop some meanwhile."""
    for path in place.iterdir():
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            yield status.st_mtime_ns, status.st_size, path
