"""Programs that were read before, from the cache: nothing is parsed, and no parser imported.

What a text says depends on the text and on pkc. Its tree is kept as a pickle, in a folder of the user's own, whose
machine code pkc runs too.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import cast

from pkc import cache
from pkc.frontend import tree
from pkc.frontend.files import read_source
from pkc.frontend.link import link
from pkc.location import Source


def read_file(path: str | Path) -> tree.Program:
    """The kernels of a `.pk` file. Raises `PkcError`."""
    return read_text(read_source(path, ".pk"))


def read_text(source: Source) -> tree.Program:
    """The kernels of a text, at least one, each with the functions that it calls. Raises `PkcError`."""
    return link(_tree(source, needed=True), lambda path: _tree(read_source(path, ".pk")))


def _tree(source: Source, *, needed: bool = False) -> tree.Program:
    """What a text says; with a kernel at least, if that is `needed`."""
    source.remember()
    key = cache.key("tree 1", cache.compiler(), str(needed), source.name, source.text)
    kept = cache.get(key)
    if kept is not None:
        return cast("tree.Program", pickle.loads(kept))
    from pkc.frontend.parse import parse_tree, refuse_empty

    found = parse_tree(source)
    if needed:
        refuse_empty(found)
    cache.put(key, pickle.dumps(found))
    return found
