"""blosc with snappy is read, which numcodecs cannot decode; see `make_snappy.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from n5zarr import N5Error, N5Store, decode_block

SNAPPY = Path(__file__).parents[1] / "data" / "snappy.n5"
DATASETS = sorted(path.name for path in SNAPPY.iterdir())
EXPECTED = (np.arange(40 * 30) // 13 % 251).reshape(30, 40)


def test_the_corpus_is_whole() -> None:
    assert len(DATASETS) == 7


@pytest.mark.parametrize("codecs", ["zarr", "n5", "portable"])
@pytest.mark.parametrize("zarr_format", [3, 2])
@pytest.mark.parametrize("name", DATASETS)
def test_values_are_those_that_c_blosc_compressed(name: str, zarr_format: Any, codecs: Any) -> None:
    array = zarr.open_array(N5Store(SNAPPY, zarr_format=zarr_format, codecs=codecs), path=name)
    np.testing.assert_array_equal(array[...], EXPECTED)


@pytest.mark.parametrize("name", DATASETS)
def test_a_cut_buffer_is_an_error(name: str) -> None:
    block = (SNAPPY / name / "0" / "0").read_bytes()
    for n in range(12, len(block)):
        with pytest.raises(N5Error):
            decode_block(
                block[:n], data_type=name.split("-", maxsplit=1)[0], compression={"type": "blosc"}
            )
