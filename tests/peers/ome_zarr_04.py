"""Read images of OME-Zarr 0.4 with zarr-python 2, and with ome-zarr-py of its time.

``test_ome_zarr_04.py`` runs this file where both are installed: ``python ome_zarr_04.py RESULT
ROOT=IMAGE,IMAGE ...``, with paths or URLs as roots. It writes what they read as JSON.
"""

from __future__ import annotations

import hashlib
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

zarr: Any = import_module("zarr")  # not the version that mypy knows
io: Any = import_module("ome_zarr.io")
reader: Any = import_module("ome_zarr.reader")


def checksum(values: Any) -> str:
    """Return SHA-256 of the elements as big-endian bytes in C order, as in the manifest."""
    whole = np.asarray(values)
    big = np.ascontiguousarray(whole, whole.dtype.newbyteorder(">"))
    return hashlib.sha256(big.tobytes()).hexdigest()


def read(root: str, path: str) -> dict[str, Any]:
    group = zarr.open_group(root, mode="r")[path] if path else zarr.open_group(root, mode="r")
    (image,) = group.attrs["multiscales"]
    levels = [group[dataset["path"]] for dataset in image["datasets"]]
    location = io.parse_url(f"{root}/{path}".rstrip("/"))
    node, *_ = reader.Reader(location)()
    return {
        "version": location.fmt.version,
        "by zarr": [checksum(level[...]) for level in levels],
        "by ome-zarr": [checksum(level.compute()) for level in node.data],
        "separators": sorted({level._dimension_separator for level in levels}),
        "names": [level.attrs["_ARRAY_DIMENSIONS"] for level in levels],
        "axes": node.metadata["axes"],
        "steps": node.metadata["coordinateTransformations"],
        "limits": node.metadata.get("contrast_limits"),
    }


def main(result: str, *roots: str) -> None:
    found: dict[str, Any] = {}
    for each in roots:
        root, _, images = each.partition("=")
        found |= {f"{root}/{path}".rstrip("/"): read(root, path) for path in images.split(",")}
    Path(result).write_text(json.dumps({"zarr": zarr.__version__, "images": found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
