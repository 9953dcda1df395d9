"""Write a container with a volume whose picture is known, without n5zarr."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.contract.bigstitcher import write_dataset

SHAPE = (13, 29, 37)  # z, y, x
VOXEL = np.array([30.0, 10.0, 6.0])  # nm
FIRST = np.array([105.0, -70.0, 44.0])  # nm: the centre of the first voxel
DARK, MEDIUM, BRIGHT = 1000, 15000, 39000
LABELS = (7, 12, 2**40 + 1)
BOXES = (  # both cut by the slices through the centre, (6, 14, 18)
    (slice(4, 9), slice(8, 19), slice(16, 30)),
    (slice(3, 8), slice(11, 24), slice(4, 11)),
)


def volume() -> npt.NDArray[np.uint16]:
    """Return the volume: a bright and a dark box in a medium grey."""
    data = np.full(SHAPE, MEDIUM, "u2")
    for box, value in zip(BOXES, (BRIGHT, DARK), strict=True):
        data[box] = value
    return data


def label_volume() -> npt.NDArray[np.uint64]:
    """Return labels: the same boxes and a third one, with 0 in between."""
    data = np.zeros(SHAPE, "u8")
    boxes = (*BOXES, (slice(0, 13), slice(1, 6), slice(2, 33)))
    for box, label in zip(boxes, LABELS, strict=True):
        data[box] = label
    return data


def write_volumes(root: Path) -> Path:
    """Write the container, described as COSEM does: ``em``, of two levels, and ``cells/seg``."""
    root.mkdir()
    root.joinpath("attributes.json").write_text('{"n5":"4.0.0"}')
    fine = volume()
    padded = np.pad(fine, [(0, n % 2) for n in SHAPE], mode="edge")
    halves = [n // 2 for n in padded.shape]
    split = padded.reshape(*(m for n in halves for m in (n, 2)))
    coarse = split.mean(axis=(1, 3, 5)).astype("u2")
    write_dataset(root / "em" / "s0", fine, _document(fine, 1))
    write_dataset(root / "em" / "s1", coarse, _document(coarse, 2))
    seg = label_volume()
    write_dataset(root / "cells" / "seg", seg, _document(seg, 1))
    return root


def _document(data: npt.NDArray[Any], by: int) -> dict[str, Any]:
    places = {"scale": [*VOXEL * by], "translate": [*FIRST + VOXEL * (by - 1) / 2]}
    return {
        "blockSize": data.shape[::-1], "dataType": data.dtype.name,
        "compression": {"type": "gzip", "level": -1, "useZlib": False},
        "transform": {"axes": ["z", "y", "x"], "units": ["nm", "nm", "nm"], **places},
    }  # fmt: skip


def write_unit(root: Path, unit: str) -> None:
    """Write a container whose root is a dataset with a unit, as n5-viewer describes it."""
    document = {
        "n5": "4.0.0", "dimensions": [128, 96, 40], "blockSize": [64, 64, 64], "dataType": "uint8",
        "compression": {"type": "raw"},
        "pixelResolution": {"unit": unit, "dimensions": [2, 3, 5]},
    }  # fmt: skip
    root.mkdir()
    (root / "attributes.json").write_text(json.dumps(document))
