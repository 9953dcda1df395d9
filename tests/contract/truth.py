"""What Java wrote of each convention, and a check that xarray shows it so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr

from n5zarr import N5Store

METADATA = Path(__file__).parents[1] / "data/java/metadata.n5"
TRUTH = [*map(json.loads, METADATA.with_name("metadata.truth.jsonl").read_text().splitlines())]


def check_truth(dataset: xr.Dataset, truth: dict[str, Any], axis_order: Any) -> None:
    """Check names, positions and units of the axes, and the elements."""
    path = truth["path"]
    array = dataset[path.rpartition("/")[2]]
    assert list(array.dims) == (truth["axes"] if axis_order == "F" else truth["axes"][::-1])
    units = truth["unit"] if isinstance(truth["unit"], list) else [truth["unit"]] * 3
    for i, dim in enumerate(truth["axes"]):
        labels = truth.get("labels", {}).get(dim)
        if labels:
            assert dataset[dim].values.tolist() == labels
            continue
        expected = truth["scale"][i] * np.arange(array.sizes[dim]) + truth["translation"][i]
        np.testing.assert_array_equal(dataset[dim].values, expected)
        assert dataset[dim].attrs.get("units") == units[i]
    plain = zarr.open_array(N5Store(METADATA, axis_order=axis_order), path=path)
    assert array.dtype == plain.dtype
    np.testing.assert_array_equal(array.values, plain[...])
