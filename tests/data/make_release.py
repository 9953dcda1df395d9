"""Write containers for later releases to read: ``uv run python -m tests.data.make_release``.

`tests/conformance/test_releases.py` reads those of all releases, and compares them with the values
here, which are made by numpy. They are never written again; new kinds of nodes are added with the
version that first writes them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import xarray as xr
import zarr
from numcodecs.registry import get_codec
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

import n5zarr

RELEASES = Path(__file__).parent / "releases"
SHAPE, CHUNKS = (5, 3, 7), (3, 2, 4)
COMPRESSIONS = ("raw", "gzip", "zstd", "blosc", "bzip2", "xz", "lz4")
TYPES = (
    "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64",
)  # fmt: skip
ATTRIBUTES: dict[str, Any] = {
    "text": "µm, \u2192", "list": [1, 2.5, None], "nested": {"a": {"b": True}}, "n5": "mine",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Node:
    """An array of the container: its expected values and properties, and how it is made."""

    values: np.ndarray[Any, Any]
    since: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)  # of zarr's create_array
    fill_value: Any = 0

    @property
    def container(self) -> str:
        """Return the name of its container: zarr does not find arrays of v2 in groups of v3."""
        return "zarr2" if self.options.get("zarr_format") == 2 else "zarr3"


def numbers(dtype: str) -> np.ndarray[Any, Any]:
    """Return values that differ from each other, negative ones where the type has them."""
    n = np.arange(np.prod(SHAPE)).reshape(SHAPE)
    return (n * 37 % 251 - (0 if dtype.startswith("u") else 125)).astype(dtype)


def plain() -> dict[str, Node]:
    """Describe an array of each data type, with the compressions in turn."""
    pairs = [(name, COMPRESSIONS[i % len(COMPRESSIONS)]) for i, name in enumerate(TYPES)]
    return {
        f"plain/{dtype}": Node(
            values=numbers(dtype), since=(0, 1, 0), options={"compression": compression}
        )
        for dtype, compression in pairs
    }


def through_zarr() -> dict[str, Node]:
    """Return arrays that zarr writes, and that N5 alone cannot express."""
    i, since = numbers("int32"), (0, 1, 0)
    delta = cast("Any", get_codec)({"id": "delta", "dtype": "<i4"})
    text = np.array([f"block {n} é" for n in i.ravel()], dtype=np.dtypes.StringDType())
    values: dict[str, tuple[np.ndarray[Any, Any], dict[str, Any], Any]] = {
        "bool": (i > 3, {"compressors": GzipCodec(level=5)}, False),
        "float16": (i.astype("float16"), {"compressors": ZstdCodec(level=3)}, np.float16("nan")),
        "complex64": ((i + 1j * i[::-1]).astype("complex64"), {}, 0j),
        "datetime": (i.astype("datetime64[s]"), {}, np.datetime64("NaT", "s")),
        "text": (text.reshape(SHAPE), {}, ""),
        "bytes": (i.astype("S5"), {"compressors": BloscCodec(cname="lz4")}, b""),
        "filled": (i.astype("uint16"), {"fill_value": 9}, 9),
        "sharded": (i.astype("uint32"), {"shards": (6, 4, 8)}, 0),
        "small_end_first": (i.astype("<f4"), {"zarr_format": 2}, 0),
        "delta": (i, {"zarr_format": 2, "filters": [delta]}, 0),
    }
    return {
        f"zarr/{name}": Node(values=array, since=since, options=options, fill_value=fill_value)
        for name, (array, options, fill_value) in values.items()
    }


def dataset() -> xr.Dataset:
    """Return a Dataset with regular, irregular and text coordinates."""
    coords = {
        "z": ("z", 40.0 * np.arange(5) + 20, {"units": "nm"}),
        "y": ("y", np.array([0.0, 1.0, 4.0])),
        "x": ("x", [f"column {n}" for n in range(7)]),
    }
    return xr.Dataset(
        {"em": (("z", "y", "x"), numbers("uint8")), "mean": ("z", np.linspace(-1, 1, 5))}, coords
    )


def place(folder: Path, container: str) -> Path:
    """Return the container of a release."""
    return folder / f"{folder.name}-{container}.n5"


def write(folder: Path) -> None:
    """Write all containers of this release."""
    path = place(folder, "zarr3")
    zarr.create_group(n5zarr.N5Store(place(folder, "zarr2")), zarr_format=2)
    for name, node in plain().items():
        n5zarr.create_array(path, path=name, data=node.values, chunks=CHUNKS, **node.options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", zarr.errors.UnstableSpecificationWarning)
        for name, node in through_zarr().items():
            made = zarr.create_array(
                n5zarr.N5Store(place(folder, node.container)), name=name, shape=SHAPE,
                dtype=node.values.dtype, chunks=CHUNKS,
                **{"fill_value": node.fill_value, **node.options},
            )  # fmt: skip
            made[...] = node.values
    zarr.create_group(n5zarr.N5Store(path), path="attributes", attributes=ATTRIBUTES)
    n5zarr.to_n5(dataset(), f"{path}/dataset", mode="w")


def main() -> None:
    path = RELEASES / n5zarr.__version__
    if path.exists():
        message = f"{path} is there, and what a release wrote is never written again"
        raise SystemExit(message)
    write(path)


if __name__ == "__main__":
    main()
