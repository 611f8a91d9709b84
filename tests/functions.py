"""Numbers to try the functions of the language on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_EDGES = [
    0.0,
    2.0**-149,
    2.0**-140,
    2.0**-126,
    1e-30,
    2.0**-25,
    2.0**-12,
    0.1,
    0.5,
    1.0,
    1.5,
    2.0,
    3.0,
    np.pi,
    9.1,
    16.0,
]
_FAR = [87.3, 88.0, 88.72, 88.73, 103.9, 104.0, 126.0, 127.9, 128.0, 149.0, 150.0, 1e5, 2.0**31, 2.0**64, 3.4028235e38]

_POSITIVE = np.float32([*_EDGES, *_FAR, np.inf])
_BESIDE = [np.nextafter(_POSITIVE[:-2], np.float32(to)) for to in (-1, np.inf)]
SPECIAL = np.concatenate([*(sign * found for sign in (-1, 1) for found in (_POSITIVE, *_BESIDE)), np.float32([np.nan])])
"""Numbers at which something begins or ends, with their neighbours."""


def drawn(rng: np.random.Generator, count: int) -> npt.NDArray[Any]:
    """The special numbers, numbers near 1, and others of all sizes, subnormal ones too; at least `count`."""
    anything = rng.integers(0, 2**32, count, np.uint32).view(np.float32)
    near = (1 + rng.standard_normal(count // 8) * 2.0 ** rng.integers(-23, 0, count // 8)).astype(np.float32)
    small = (rng.standard_normal(count // 4) * 30).astype(np.float32)
    return np.concatenate([SPECIAL, anything, near, small])
