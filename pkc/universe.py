"""What pkc adds to xDSL's tools, found through the entry point `xdsl.universe`."""

from __future__ import annotations

from xdsl.universe import Universe

from pkc.dialect.pk import Pk
from pkc.passes import PASSES

UNIVERSE = Universe(all_dialects={"pk": lambda: Pk}, all_passes=PASSES)
