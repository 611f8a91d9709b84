"""Without torch there are no peers to run on the host; where it must be there, its absence fails."""

from __future__ import annotations

import os
from importlib.util import find_spec

if find_spec("torch") is None and not os.environ.get("PKC_REQUIRE_TORCH"):
    collect_ignore = ["test_attention.py", "test_layers.py", "test_padding.py"]
