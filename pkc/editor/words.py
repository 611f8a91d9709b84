"""What the words of the language mean, for hover and completion: the docstrings of `pkc/language.py`."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from itertools import pairwise

from pkc import language
from pkc.frontend.expressions import SIGNATURES


@cache
def meanings() -> dict[str, str]:
    """A line or two for each word; of Python's own functions, how they are written."""
    found = {name: f"`{signature.usage}`" for name, signature in SIGNATURES.items()}
    for word, said in pairwise(ast.parse(inspect.getsource(language)).body):
        if isinstance(word, ast.AnnAssign) and isinstance(word.target, ast.Name) and isinstance(said, ast.Expr):
            found[word.target.id] = str(ast.literal_eval(said.value)).replace("\n", " ")
    return found
