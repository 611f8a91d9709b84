"""Without the extra `mlir` there is no upstream MLIR to test against; where it must be there, its absence fails."""

from __future__ import annotations

import os
from importlib.util import find_spec

if find_spec("iree") is None and not os.environ.get("PKC_REQUIRE_MLIR"):
    collect_ignore = ["test_mlir.py"]
