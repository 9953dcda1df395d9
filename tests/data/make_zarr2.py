"""Write `zarr2_types.n5` and `zarr2_types.expected.json`: data types that only zarr-python 2 wrote.

    uv venv --python 3.13 /tmp/zarr2
    uv pip install --python /tmp/zarr2/bin/python zarr==2.18.7 numcodecs==0.15.2 numpy==2.5.5
    /tmp/zarr2/bin/python tests/data/make_zarr2.py

The expected values are what zarr-python 2 itself reads back, as little-endian bytes in C order.
"""

from __future__ import annotations

import itertools
import json
import shutil
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

SHAPE, CHUNKS = (7, 5), (4, 3)
HALF = [0, -0.0, 1.5, -2.25, 65504, 6e-8, np.inf, -np.inf, np.nan, 1 / 3]


def numbers(dtype: str) -> np.ndarray:
    n: np.ndarray = np.arange(35).reshape(SHAPE)
    if dtype == "bool":
        return np.asarray(n % 3 == 0)
    if dtype == "float16":
        return np.resize(np.array(HALF, "f2"), SHAPE)
    ticks: np.ndarray = n * 12345678901 - 9876543210
    ticks[0, :2] = np.iinfo("i8").min, -1  # NaT
    return ticks.astype(dtype)


def codecs(zarr: Any) -> dict[str, Any]:
    return {
        "raw": None, "gzip": zarr.GZip(5), "zlib": zarr.Zlib(5), "bz2": zarr.BZ2(5),
        "xz": zarr.LZMA(), "lzma": zarr.LZMA(format=2), "zstd": zarr.codecs.Zstd(3),
        "blosc": zarr.Blosc(shuffle=1),
    }  # fmt: skip


def write(zarr: Any, group: Any) -> None:
    every = list(itertools.product(("bool", "float16", "datetime64[s]"), codecs(zarr)))
    every += [(f"datetime64{unit}", "raw") for unit in ("[ns]", "[10s]", "[D]")]
    every += [("timedelta64[us]", "gzip"), ("timedelta64[25us]", "raw"), ("float128", "raw")]
    for dtype, codec in every:
        options = {"shape": SHAPE, "chunks": CHUNKS, "compressor": codecs(zarr)[codec]}
        array = group.create_dataset(f"{dtype}/{codec}", dtype=dtype, **options)
        array[:4] = numbers(dtype)[:4]
        array[4:, :3] = numbers(dtype)[4:, :3]  # the last block is missing
    for dtype in ("bool", "float16", "datetime64[s]", "uint16"):
        scalar = group.create_dataset(f"scalar/{dtype}", dtype=dtype, shape=())
        scalar[...] = numbers(dtype)[2, 3]
    group.create_dataset("scalar/missing", dtype="float16", shape=())


def write_unreadable(zarr: Any, group: Any) -> None:
    """Write documents with zarr-python 2 that it then cannot read."""
    for dtype in ("complex64", "<U3", "S3", "V3"):
        name = f"unreadable/{np.dtype(dtype).name}"
        try:
            group.create_dataset(name, shape=SHAPE, chunks=CHUNKS, dtype=dtype, fill_value=None)
        except (zarr.errors.MetadataError, TypeError):
            continue
        message = f"{name}: zarr-python 2 reads it"
        raise AssertionError(message)


def read(group: Any) -> dict[str, Any]:
    expected: dict[str, Any] = {}
    for name in sorted(set(group.group_keys()) - {"float128", "unreadable"}):
        for path, array in group[name].arrays():
            values = array[...]
            dtype = values.dtype.newbyteorder("<")
            elements = values.astype(dtype).tobytes().hex()
            what = {"dtype": dtype.str, "shape": values.shape, "elements": elements}
            expected[f"{name}/{path}"] = what
    return expected


def main() -> None:
    zarr: Any = import_module("zarr")  # another version than that of the tests
    assert zarr.__version__ == "2.18.7", zarr.__version__
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    root = folder / "zarr2_types.n5"
    shutil.rmtree(root, ignore_errors=True)
    store = zarr.N5Store(str(root))
    write(zarr, zarr.open_group(store, mode="w"))
    write_unreadable(zarr, zarr.open_group(store))
    expected = read(zarr.open_group(store, mode="r"))
    text = json.dumps(expected, indent=1) + "\n"
    (folder / "zarr2_types.expected.json").write_text(text)


if __name__ == "__main__":
    main()
