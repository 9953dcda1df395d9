"""Write a split project of BigStitcher, and cut its views, by the rules of Java, without n5zarr.

multiview-reconstruction 58d0e65 (8.0, 2025): ``SplittingTools.splitImages`` (the old transforms,
and "Image Splitting", the first element of the box, which is applied first),
``XmlIoSplitViewerImgLoader`` and ``SplitViewerSetupImgLoader``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import zarr

from tests.contract.stored import write_by_tensorstore

TIMEPOINTS = (0, 2)
SHAPES = {0: (11, 17, 29), 3: (7, 13, 19)}  # of the images, z, y, x
FACTORS = [(1, 1, 1), (2, 3, 2), (5, 4, 3)]  # x first
VOXEL = (0.5, 0.5, 2.0)
MISSING = (3, 2)
CHUNKS = (4, 5, 7)


class Box(NamedTuple):
    """A new setup: old setup, first and last element, x first."""

    old: int
    first: tuple[int, int, int]
    last: tuple[int, int, int]


BOXES = {
    0: Box(0, (0, 0, 0), (12, 16, 10)), 1: Box(0, (10, 0, 0), (28, 16, 10)),
    2: Box(3, (5, 3, 1), (17, 11, 6)), 6: Box(3, (0, 0, 0), (18, 12, 6)),
}  # fmt: skip
IMAGES = [(old, t) for old in SHAPES for t in TIMEPOINTS if (old, t) != MISSING]
VIEWS = [(new, t) for new, box in BOXES.items() for t in TIMEPOINTS if (box.old, t) != MISSING]


def image(old: int, timepoint: int, level: int) -> np.ndarray[Any, Any]:
    """Return the elements of a level, z first, whose size is rounded down as BigStitcher does."""
    shape = [n // f for n, f in zip(SHAPES[old], FACTORS[level][::-1], strict=True)]
    return np.random.default_rng([old, timepoint, level]).integers(1, 999, shape).astype("u2")


def java_part(whole: np.ndarray[Any, Any], box: Box, level: int) -> np.ndarray[Any, Any]:
    """Cut a level as Java: level 0 as ``getImage(t)``, others as ``getImage(t, level)``."""
    ends = []
    for d, n in enumerate(whole.shape[::-1]):
        resolution = FACTORS[level][d]
        # setUpMultiRes
        low = math.floor(box.first[d] / resolution)
        high = math.floor((box.last[d] - 0.01) / resolution)
        high = min(high, n - 1)  # updateScaledIntervals
        ends.append((box.first[d], box.last[d]) if level == 0 else (low, high))
    (x, x1), (y, y1), (z, z1) = ends
    return whole[z : z1 + 1, y : y1 + 1, x : x1 + 1]


def part(view: tuple[int, int], level: int) -> np.ndarray[Any, Any]:
    """Return the elements of a split view."""
    box = BOXES[view[0]]
    return java_part(image(box.old, view[1], level), box, level)


def write_n5(folder: Path) -> str:
    """Write the images as N5; return the loader."""
    for old, t, level, values in _images():
        path = folder / f"d.n5/setup{old}/timepoint{t}/s{level}"
        write_by_tensorstore(path, values, CHUNKS)
    (folder / "d.n5/attributes.json").write_text('{"n5": "4.0.0"}')
    for old in SHAPES:
        document = f'{{"dataType": "uint16", "downsamplingFactors": {list(map(list, FACTORS))}}}'
        (folder / f"d.n5/setup{old}/attributes.json").write_text(document)
    return "<ImageLoader format='bdv.n5'><n5 type='relative'>d.n5</n5></ImageLoader>"


def write_ome(folder: Path) -> str:
    """Write the images as OME-Zarr of BigStitcher; return the loader."""
    root = zarr.create_group(f"{folder}/d.ome.zarr", zarr_format=2)
    for old, t, level, values in _images():
        array = root.create_array(
            f"s{old}-t{t}.zarr/{level}", shape=(1, 1, *values.shape), dtype="u2",
            chunks=(1, 1, *CHUNKS),
        )  # fmt: skip
        array[0, 0] = values
        scales = [[{"type": "scale", "scale": [1, 1, *by[::-1]]}] for by in FACTORS]
        datasets: Any = [
            {"path": str(n), "coordinateTransformations": own} for n, own in enumerate(scales)
        ]
        multiscales = [{"version": "0.4", "datasets": datasets}]
        root[f"s{old}-t{t}.zarr"].attrs["multiscales"] = multiscales
    groups = "".join(
        f"<zgroup setup='{old}' tp='{t}' path='s{old}-t{t}.zarr' indicies='0 0'/>"
        for old, t in IMAGES
    )
    zarr_element = "<zarr type='relative'>d.ome.zarr</zarr>"
    start = "<ImageLoader format='bdv.multimg.zarr' version='3.0'>"
    return f"{start}{zarr_element}<zgroups>{groups}</zgroups></ImageLoader>"


def write_hdf5(folder: Path) -> str:
    """Write the images as HDF5; return the loader."""
    with h5py.File(folder / "d.h5", "w") as file:
        for old in SHAPES:
            file[f"s{old:02}/resolutions"] = np.array(FACTORS, float)
        for old, t, level, values in _images():
            path = f"t{t:05}/s{old:02}/{level}/cells"
            chunks = tuple(map(min, CHUNKS, values.shape))
            file.create_dataset(path, data=values, chunks=chunks)
    return "<ImageLoader format='bdv.hdf5'><hdf5 type='relative'>d.h5</hdf5></ImageLoader>"


FORMATS = {"n5": write_n5, "ome": write_ome, "hdf5": write_hdf5}


def _images() -> list[tuple[int, int, int, np.ndarray[Any, Any]]]:
    levels = range(len(FACTORS))
    return [(old, t, level, image(old, t, level)) for old, t in IMAGES for level in levels]


def setups_xml(sizes: Mapping[int, tuple[int, ...]], missing: list[tuple[int, int]]) -> str:
    """Return setups, time points and missing views; ``sizes`` are x first."""
    setups = "".join(
        f"<ViewSetup><id>{n}</id><name>{n}</name><size>{' '.join(map(str, size))}</size><voxelSize>"
        f"<unit>um</unit><size>{' '.join(map(str, VOXEL))}</size></voxelSize>"
        f"<attributes><channel>0</channel><tile>{n}</tile></attributes></ViewSetup>"
        for n, size in sizes.items()
    )
    views = "".join(f"<MissingView timepoint='{t}' setup='{n}'/>" for n, t in missing)
    points = "".join(f"<Timepoint><id>{t}</id></Timepoint>" for t in TIMEPOINTS)
    times = f"<Timepoints type='list'>{points}</Timepoints>"
    tiles = "".join(f"<Tile><id>{n}</id><name>{n}</name></Tile>" for n in sizes)
    listed = f"<Attributes name='tile'>{tiles}</Attributes>"
    listed += "<Attributes name='channel'><Channel><id>0</id><name>0</name></Channel></Attributes>"
    return f"<ViewSetups>{setups}{listed}</ViewSetups>{times}<MissingViews>{views}</MissingViews>"


def split_loader(inner: str, boxes: Mapping[int, Box], old: str, kind: str) -> str:
    """Return the loader of split views around another one."""
    definitions = "".join(
        f"<SetupIdDefinition><NewId>{new}</NewId><OldId>{box.old}</OldId><min>"
        f"{' '.join(map(str, box.first))}</min><max>{' '.join(map(str, box.last))}</max>"
        "</SetupIdDefinition>"
        for new, box in boxes.items()
    )
    sequence = f"<SequenceDescription>{old}</SequenceDescription>"
    ids = f"<SetupIds>{definitions}</SetupIds>"
    return f"<ImageLoader format='{kind}'>{inner}{sequence}{ids}</ImageLoader>"


def size(box: Box) -> tuple[int, ...]:
    """Return the size of a box, x first."""
    return tuple(b - a + 1 for a, b in zip(box.first, box.last, strict=True))


OLD = setups_xml({n: shape[::-1] for n, shape in SHAPES.items()}, [MISSING])


def write_project(folder: Path, kind: str, loader: str = "split.viewerimgloader") -> Path:
    """Write the images in a format, and the XML of the split project, which is returned."""
    inner = FORMATS[kind](folder)
    xml = folder / "split.xml"
    xml.write_text(project_xml(split_loader(inner, BOXES, OLD, loader), BOXES))
    return xml


def project_xml(
    loader: str, boxes: Mapping[int, Box], absent: Sequence[tuple[int, int]] = (MISSING,)
) -> str:
    """Return the XML of a project whose views are placed as ``SplittingTools`` does."""
    missing = [(n, t) for n, box in boxes.items() for t in TIMEPOINTS if (box.old, t) in absent]
    views = "".join(
        f"<ViewRegistration timepoint='{t}' setup='{n}'>"
        "<ViewTransform type='affine'><Name>calibration</Name>"
        f"<affine>1 0 0 {10 * box.old} 0 1 0 0 0 0 4 0</affine></ViewTransform>"
        "<ViewTransform type='affine'><Name>Image Splitting</Name><affine>"
        f"1 0 0 {box.first[0]} 0 1 0 {box.first[1]} 0 0 1 {box.first[2]}</affine></ViewTransform>"
        "</ViewRegistration>"
        for n, box in boxes.items()
        for t in TIMEPOINTS
    )
    setups = setups_xml({n: size(box) for n, box in boxes.items()}, missing)
    return (
        '<SpimData version="0.2"><BasePath type="relative">.</BasePath><SequenceDescription>'
        f"{loader}{setups}</SequenceDescription><ViewRegistrations>{views}</ViewRegistrations>"
        "</SpimData>"
    )


def first_position(setup: int, level: int) -> dict[str, float]:
    """Return where a level begins: the registration of the middle of its first element.

    Java's levels have the factors alone (``MipmapTransforms.getMipmapTransformDefault``).
    """
    box = BOXES[setup]
    x, y, z = (a + (f - 1) / 2 for a, f in zip(box.first, FACTORS[level], strict=True))
    unit = min(VOXEL)
    return {"x": (x + 10 * box.old) * unit, "y": y * unit, "z": z * 4 * unit}
