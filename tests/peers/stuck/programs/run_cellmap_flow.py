"""Find voxel size, offset and block size of N5 datasets with cellmap-flow, and read a region."""

from __future__ import annotations

import pickle
import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def read(folder: Path) -> dict[str, Any]:
    ds = import_module("cellmap_flow.utils.ds")
    images = import_module("cellmap_flow.image_data_interface")
    found = {}
    for path in (folder / "data.n5").rglob("s0"):
        voxel_size, chunks, shape, roi, axes, kind = ds.get_ds_info(str(path))
        image = images.ImageDataInterface(str(path), normalize=False)
        found[path.parent.name] = {
            "geometry": (tuple(voxel_size), tuple(roi.offset), tuple(roi.shape)),
            "described": (tuple(chunks), tuple(shape), axes, kind),
            "read": image.to_ndarray_ts(image.roi),
        }
    return found


if __name__ == "__main__":
    Path(sys.argv[3]).write_bytes(pickle.dumps({"read": read}[sys.argv[1]](Path(sys.argv[2]))))
