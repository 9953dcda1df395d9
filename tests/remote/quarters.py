"""Write a quarter of a block of an array, in a process that imports little else."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import zarr

from n5zarr import N5Store

__all__ = ["ROUNDS", "write"]

ROUNDS = 300 if os.environ.get("N5ZARR_STRESS") else 5
QUARTERS: list[Any] = [np.s_[:3, :4], np.s_[:3, 4:], np.s_[3:, :4], np.s_[3:, 4:]]


def write(place: tuple[str, dict[str, Any]], number: int, codecs: Any) -> None:
    """Write one quarter of a block again and again, and check that each write is there."""
    url, options = place
    store = N5Store(url, codecs=codecs, **options)
    array: Any = zarr.open_array(store, path="a", mode="r+")
    for value in range(2, ROUNDS + 2):
        array[QUARTERS[number]] = value
        block = array[...]
        assert (block[QUARTERS[number]] == value).all()
        assert all(len(np.unique(block[quarter])) == 1 for quarter in QUARTERS)
