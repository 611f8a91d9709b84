"""Without the extra `editor` there is no server to test; where it must be there, its absence fails."""

from __future__ import annotations

import os
from importlib.util import find_spec

if find_spec("pygls") is None and not os.environ.get("PKC_REQUIRE_EDITOR"):
    collect_ignore = ["test_server.py"]
