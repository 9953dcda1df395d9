"""Write `n5zarr/data/sample.n5`, the container that comes with the package.

The bytes are those that Java N5 4.x writes: attributes in the order of its HashMap, compact;
blocks in mode 0, truncated at the edges; gzip of zlib at level 6 with Java's header. Does not use
n5zarr.
Run from the checkout: ``uv run python tests/data/make_sample.py [TARGET]``.
"""

from __future__ import annotations

import itertools
import json
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np

TARGET = Path(__file__).parents[2] / "n5zarr" / "data" / "sample.n5"
SHAPE = (40, 96, 128)  # z, y, x
BLOCK = (50, 40, 16)  # x, y, z
VOXEL = (8.0, 8.0, 20.0)  # x, y, z in nanometres
N_CELLS = 14


def java_gzip(data: bytes) -> bytes:
    """Compress as java.util.zip.GZIPOutputStream through commons-compress does."""
    deflater = zlib.compressobj(6, zlib.DEFLATED, -15)
    packed = deflater.compress(data) + deflater.flush()
    header = bytes.fromhex("1f8b08000000000000ff")
    return header + packed + struct.pack("<II", zlib.crc32(data), len(data))


def write_block(file: Path, block: np.ndarray) -> None:
    big_endian = np.ascontiguousarray(block, block.dtype.newbyteorder(">"))
    header = struct.pack(f">HH{block.ndim}I", 0, block.ndim, *block.shape[::-1])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(header + java_gzip(big_endian.tobytes()))


def write_json(folder: Path, document: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    (folder / "attributes.json").write_text(text, encoding="utf-8", newline="")


def write_dataset(folder: Path, array: np.ndarray, block: tuple[int, ...], level: int) -> None:
    document = {
        "dataType": array.dtype.name, "compression": {"type": "gzip", "useZlib": False, "level": 6},
        "blockSize": block, "dimensions": array.shape[::-1], "axes": ["x", "y", "z"],
        "units": ["nm", "nm", "nm"], "resolution": [v * 2**level for v in VOXEL],
        "transform": transform(level),
    }  # fmt: skip
    write_json(folder, document)
    grid = (range(-(-n // b)) for n, b in zip(array.shape[::-1], block, strict=True))
    for position in itertools.product(*grid):
        box = [slice(p * b, (p + 1) * b) for p, b in zip(position, block, strict=True)]
        write_block(folder.joinpath(*map(str, position)), array[tuple(box[::-1])])


def transform(level: int) -> dict[str, Any]:
    """Return the transform of a level as COSEM states it: in C order, pixel centres."""
    factor = 2**level
    return {
        "axes": ["z", "y", "x"],
        "units": ["nm", "nm", "nm"],
        "scale": [v * factor for v in VOXEL[::-1]],
        "translate": [v * (factor - 1) / 2 for v in VOXEL[::-1]],
    }


def picture() -> tuple[np.ndarray, np.ndarray]:
    """Draw cells with membranes and organelles; return the image and the cells' labels."""
    rng = np.random.default_rng(20)
    zyx = np.stack(np.meshgrid(*map(np.arange, SHAPE), indexing="ij"), axis=-1)
    physical = zyx * np.array(VOXEL[::-1]) / VOXEL[0]
    extent = np.array(SHAPE) * np.array(VOXEL[::-1]) / VOXEL[0]
    # every voxel belongs to the nearest centre; the space between the two nearest is membrane
    centres = rng.uniform(0.0, 1.0, (N_CELLS, 3)) * extent
    waves = 4 * np.sin(physical / 9 + rng.uniform(0, 6, 3))[..., ::-1]
    distances = np.linalg.norm((physical + waves)[..., None, :] - centres, axis=-1)
    nearest = np.sort(distances, axis=-1)
    gap = nearest[..., 1] - nearest[..., 0]
    labels = distances.argmin(axis=-1) + 1
    image = 165 + 18 * rng.uniform(-1, 1, N_CELLS)[labels - 1]
    places = centres[rng.integers(0, N_CELLS, 30)] + rng.normal(0, 13, (30, 3))
    radii, tones = rng.uniform(3.5, 8, 30), rng.uniform(-75, -35, 30)
    for centre, radius, tone in zip(places, radii, tones, strict=True):
        r = np.linalg.norm((physical - centre) * [1, 1, 0.8], axis=-1) / radius
        image = np.where((r < 1) & (gap > 7), image + tone * np.clip(4 * (1 - r), 0, 1), image)
    image -= 110 * np.exp(-((gap / 3.0) ** 2))
    labels[gap < 3] = 0
    noise = rng.normal(0, 4.5, SHAPE)
    return np.clip(7 * np.round((image + noise) / 7), 0, 252).astype("u1"), labels.astype("u8")


def halved(array: np.ndarray) -> np.ndarray:
    """Average boxes of two voxels along each axis."""
    z, y, x = (n // 2 for n in array.shape)
    boxes = array.reshape(z, 2, y, 2, x, 2).astype("f8")
    return np.round(boxes.mean(axis=(1, 3, 5))).astype(array.dtype)


def main(target: Path = TARGET) -> None:
    image, labels = picture()
    levels = [image, halved(image), halved(halved(image))]
    write_json(target, {"n5": "4.0.0"})
    places = [{"path": f"s{k}", "transform": transform(k)} for k in range(len(levels))]
    pyramid = {  # by which Neuroglancer opens the group
        "axes": ["x", "y", "z"],
        "units": ["nm"] * 3,
        "resolution": [8.0, 8.0, 20.0],
        "downsamplingFactors": [[2.0**k] * 3 for k in range(len(levels))],
    }
    write_json(target / "em", {"multiscales": [{"name": "em", "datasets": places}], **pyramid})
    for k, level in enumerate(levels):
        write_dataset(target / "em" / f"s{k}", level, BLOCK if k < 2 else (32, 24, 10), k)
    write_dataset(target / "labels" / "s0", labels, BLOCK, 0)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
