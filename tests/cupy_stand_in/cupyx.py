"""The part of cupyx that is used with a GPU: page-locked memory of the host."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np


def empty_pinned(shape: Any, dtype: Any = float, order: Any = "C") -> np.ndarray:
    """Return an array of the host whose memory the device copies from by itself."""
    made = np.empty(shape, dtype, order)
    begin = made.__array_interface__["data"][0]
    import_module("cupy")._pinned.append((begin, begin + max(1, made.nbytes)))
    return made
