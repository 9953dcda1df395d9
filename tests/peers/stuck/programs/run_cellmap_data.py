"""Write an array with cellmap-data's ImageWriter, and read a patch with its CellMapImage."""

from __future__ import annotations

import pickle
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

SHAPE, SCALE = (7, 11, 13), (40.0, 8.0, 4.0)  # z, y, x
VALUES = np.arange(7 * 11 * 13, dtype="u2").reshape(SHAPE)


def write(folder: Path) -> None:
    scale = dict(zip("zyx", SCALE, strict=True))
    box = {a: (0.0, n * scale[a]) for a, n in zip("zyx", SHAPE, strict=True)}
    module = import_module("cellmap_data.image_writer")
    path = str(folder / "data.zarr/mito")
    shape = dict(zip("zyx", SHAPE, strict=True))
    writer = module.ImageWriter(path, "mito", scale, box, shape, dtype=np.uint16)
    writer[{a: sum(ends) / 2 for a, ends in box.items()}] = VALUES


def read(folder: Path, path: str = "data.zarr/mito") -> dict[str, Any]:
    module = import_module("cellmap_data.image")
    image = module.CellMapImage(str(folder / path), "raw", SCALE, (2, 3, 4))
    box = image.bounding_box
    patch = image[{axis: sum(ends) / 2 for axis, ends in box.items()}]
    return {"box": box, "read": patch.numpy()}


def read_n5(folder: Path) -> dict[str, Any]:
    return read(folder, "data.n5/mito")


if __name__ == "__main__":
    calls: dict[str, Any] = {"write": write, "read": read, "read_n5": read_n5}
    found = calls[sys.argv[1]](Path(sys.argv[2]))
    Path(sys.argv[3]).write_bytes(pickle.dumps(found))
