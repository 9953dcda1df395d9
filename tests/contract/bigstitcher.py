"""Write a BigStitcher project by the rules of its sources, without n5zarr.

XML: spimdata ``XmlIoSpimData``, ``XmlIoViewSetups``, ``XmlIoTimePoints``, ``XmlIoMissingViews``,
``XmlIoTile``, and multiview-reconstruction ``XmlIoSpimData2``. Attributes: the documents 16, 19 and
21 of ``tests/data/attributes``. Blocks: N5 spec, "File-system specification", mode 0, gzip.
Interest points: multiview-reconstruction ``InterestPointsN5``, of 2025.
"""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

DOCUMENTS = Path(__file__).parents[1] / "data" / "attributes"

TIMEPOINTS = (0, 2, 5, 8)  # the pattern below
PATTERN = "0,2-8:3"
MISSING = (3, 5)
FINEST = 0.2  # um, the unit of BigStitcher's world


class Setup(NamedTuple):
    """A setup of a BigStitcher project: angle, size and place as the microscope recorded them."""

    name: str
    shape: tuple[int, int, int]  # z, y, x
    channel: int
    tile: int
    angle: int
    voxel_size: tuple[float, float, float]  # x, y, z
    moved: tuple[float, float, float]  # x, y, z, in elements of the finest voxel size


SETUPS = {
    0: Setup("left green", (3, 5, 7), 0, 0, 0, (0.2, 0.3, 1.5), (0, 0, 0)),
    1: Setup("right green", (2, 5, 11), 0, 1, 0, (0.2, 0.3, 1.5), (5.5, 1, -3)),
    3: Setup("left red", (3, 5, 7), 1, 0, 0, (0.2, 0.3, 1.5), (0.25, 0, 0)),
    4: Setup("right red", (2, 5, 11), 1, 1, 0, (0.2, 0.3, 1.5), (5.75, 1, -3)),
    7: Setup("left green turned", (3, 13, 7), 0, 0, 1, (0.2, 0.3, 1.5), (1, 2, 3)),
}
CHANNELS = {0: "GFP", 1: "mCherry & 561"}
TILES = {0: ("left", "0.0 0.0 0.0"), 1: ("right", "1.4 0.3 0.0")}
ANGLES = {0: "0", 1: "90"}
# the turn by 90 degrees about the axis y of the second angle, applied after the calibration
TURN = np.array([[0, 0, 1, 0], [0, 1, 0, 0], [-1, 0, 0, 0]], float)


def affines(setup: Setup) -> list[np.ndarray[Any, Any]]:
    """Return the transforms of a view as the XML lists them: the one applied first is the last."""
    moved = np.column_stack([np.eye(3), setup.moved])
    scale = np.diag([size / FINEST for size in setup.voxel_size])
    calibration = np.column_stack([scale, np.zeros(3)])
    return [moved, *([TURN] if setup.angle else []), calibration]


def world(setup: Setup, x: float, y: float, z: float) -> np.ndarray[Any, Any]:
    """Return the position of an element in um, applying one transform after the other."""
    point = np.array([x, y, z], float)
    for affine in reversed(affines(setup)):
        point = affine[:, :3] @ point + affine[:, 3]
    return point * FINEST


def levels(setup: Setup) -> list[tuple[int, int, int]]:
    """Return the downsampling factors of the levels, x first."""
    return [(1, 1, 1), (2, 2, 1)]


def elements(number: int, timepoint: int, level: int) -> np.ndarray[Any, Any]:
    """Return the elements of a dataset, z first."""
    setup = SETUPS[number]
    by = levels(setup)[level][::-1]
    shape = tuple(-(-n // f) for n, f in zip(setup.shape, by, strict=True))
    rng = np.random.default_rng([number, timepoint, level])
    return rng.integers(1, 999, shape).astype("u2")


def write_project(folder: Path, numbers: Collection[int] = SETUPS) -> Path:
    """Write ``dataset.xml`` and ``dataset.n5`` with some setups; return the path of the XML."""
    root = folder / "dataset.n5"
    full = json.loads((DOCUMENTS / "21-bigstitcher-setup-group-full.json").read_text())
    commented = (DOCUMENTS / "16-bdv-setup.json-with-comment-header.txt").read_text()
    commented = commented.replace('"uint8"', '"uint16"').replace("[2,2,2]", "[2,2,1]")
    array = json.loads((DOCUMENTS / "19-bdv-s0-array.json").read_text())
    for number in numbers:
        setup = SETUPS[number]
        group = root / f"setup{number}"
        group.mkdir(parents=True)
        group.joinpath("attributes.json").write_text(
            json.dumps(full | {"dimensions": setup.shape[::-1]}) if number else commented
        )
        for timepoint in TIMEPOINTS:
            if (number, timepoint) == MISSING:
                continue
            for level, by in enumerate(levels(setup)):
                data = elements(number, timepoint, level)
                document = array | {"dataType": "uint16", "downsamplingFactors": by}
                write_dataset(group / f"timepoint{timepoint}" / f"s{level}", data, document)
    root.joinpath("attributes.json").write_text('{"n5":"2.5.1"}')
    xml = folder / "dataset.xml"
    xml.write_text(project_xml(numbers=numbers))
    return xml


def write_dataset(path: Path, data: np.ndarray[Any, Any], document: dict[str, Any]) -> None:
    """Write a dataset of one block, truncated as Java's."""
    path.mkdir(parents=True)
    dimensions = data.shape[::-1]
    text = json.dumps(document | {"dimensions": dimensions})
    path.joinpath("attributes.json").write_text(text)
    header = struct.pack(f">HH{len(dimensions)}I", 0, len(dimensions), *dimensions)
    payload = gzip.compress(data.astype(data.dtype.newbyteorder(">")).tobytes())
    block = path.joinpath(*"0" * len(dimensions))
    block.parent.mkdir(parents=True)
    block.write_bytes(header + payload)


def project_xml(points: str = "<ViewInterestPoints />", numbers: Collection[int] = SETUPS) -> str:
    """Write the XML, with BigStitcher's order of elements."""
    chosen = {number: SETUPS[number] for number in numbers}
    setups = "".join(
        f"""
      <ViewSetup>
        <id>{number}</id>
        <name>{setup.name}</name>
        <size>{" ".join(map(str, setup.shape[::-1]))}</size>
        <voxelSize>
          <unit>um</unit>
          <size>{" ".join(map(str, setup.voxel_size))}</size>
        </voxelSize>
        <attributes>
          <illumination>0</illumination>
          <channel>{setup.channel}</channel>
          <tile>{setup.tile}</tile>
          <angle>{setup.angle}</angle>
        </attributes>
      </ViewSetup>"""
        for number, setup in chosen.items()
    )
    channels = "".join(
        f"<Channel><id>{k}</id><name>{name.replace('&', '&amp;')}</name></Channel>"
        for k, name in CHANNELS.items()
    )
    tiles = "".join(
        f"<Tile><id>{k}</id><name>{name}</name><location>{place}</location></Tile>"
        for k, (name, place) in TILES.items()
    )
    angles = "".join(f"<Angle><id>{k}</id><name>{n}</name></Angle>" for k, n in ANGLES.items())
    views = "".join(
        f"""
    <ViewRegistration timepoint="{timepoint}" setup="{number}">"""
        + "".join(
            f"""
      <ViewTransform type="affine">
        <Name>a</Name>
        <affine>{" ".join(map(str, affine.ravel()))}</affine>
      </ViewTransform>"""
            for affine in affines(setup)
        )
        + """
    </ViewRegistration>"""
        for number, setup in chosen.items()
        for timepoint in TIMEPOINTS
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<SpimData version="0.2">
  <BasePath type="relative">.</BasePath>
  <SequenceDescription>
    <ImageLoader format="bdv.n5" version="1.0">
      <n5 type="relative">dataset.n5</n5>
    </ImageLoader>
    <ViewSetups>{setups}
      <Attributes name="illumination"><Illumination><id>0</id></Illumination></Attributes>
      <Attributes name="channel">{channels}</Attributes>
      <Attributes name="tile">{tiles}</Attributes>
      <Attributes name="angle">{angles}</Attributes>
    </ViewSetups>
    <Timepoints type="pattern">
      <integerpattern>{PATTERN}</integerpattern>
    </Timepoints>
    <MissingViews>
      <MissingView timepoint="{MISSING[1]}" setup="{MISSING[0]}" />
    </MissingViews>
  </SequenceDescription>
  <ViewRegistrations>{views}
  </ViewRegistrations>
  {points}
  <BoundingBoxes />
  <PointSpreadFunctions />
  <StitchingResults />
  <IntensityAdjustments />
</SpimData>
"""


# -------------------------------------------------------------------- interest points, as in Java

GZIP = {"type": "gzip", "useZlib": False, "level": -1}
NONE = 0xFFFFFFFFFFFFFFFF  # the consensus set -1


def write_list(
    container: Path,
    path: str,
    points: Mapping[int, tuple[float, ...]],
    pairs: list[tuple[int, int, str, int]] | None = None,
    *,
    version: int = 2,
) -> None:
    """Write a list; ``pairs``: id, id in the other list, ``timepoint,setup,label``, set."""
    group = container / path / "interestpoints"
    group.mkdir(parents=True)
    attributes = {"pointcloud": "1.0.0", "type": "list", "list version": "1.0.0"}
    group.joinpath("attributes.json").write_text(json.dumps(attributes))
    ids = np.array([list(points)], "u8").T
    places = np.array(list(points.values()))
    for name, data in (("id", ids), ("loc", places)):
        kind: dict[str, Any] = {"compression": GZIP}
        kind["dataType"] = {"id": "uint64", "loc": "float64"}[name]
        if points:
            write_dataset(group / name, data, kind | {"blockSize": [data.shape[1], 300000]})
        else:
            (group / name).mkdir()
            document = json.dumps(kind | {"blockSize": [1], "dimensions": [0]})
            (group / name / "attributes.json").write_text(document)
    if pairs is None:
        return
    group = container / path / "correspondences"
    group.mkdir()
    numbers = {other: float(k) for k, other in enumerate(sorted({p[2] for p in pairs}))}
    listed = {"correspondences": f"{version}.0.0", "idMap": numbers}
    group.joinpath("attributes.json").write_text(json.dumps(listed))
    if pairs:
        rows = [(a, b, int(numbers[other]), c % (NONE + 1)) for a, b, other, c in pairs]
        data = np.array(rows, "u8")[:, : version + 2]
        kind = {"dataType": "uint64", "compression": GZIP, "blockSize": [1, 300000]}
        (group / "data").mkdir()
        document = json.dumps(kind | {"dimensions": data.shape[::-1]})
        (group / "data" / "attributes.json").write_text(document)
        for column in range(data.shape[1]):
            block = group / "data" / str(column) / "0"
            block.parent.mkdir()
            header = struct.pack(">HHII", 0, 2, 1, len(data))
            block.write_bytes(header + gzip.compress(data[:, column].astype(">u8").tobytes()))


def read_dataset(path: Path, code: str) -> tuple[dict[str, Any], np.ndarray[Any, Any]]:
    """Read a dataset of two dimensions, each block by struct; return its document, too."""
    document = json.loads((path / "attributes.json").read_text())
    dimensions = document["dimensions"]
    found = np.zeros(dimensions[::-1], code)
    if len(dimensions) == 1:
        return document, found
    grid = [-(-n // b) for n, b in zip(dimensions, document["blockSize"], strict=True)]
    for i in range(grid[0]):
        for j in range(grid[1]):
            block = (path / str(i) / str(j)).read_bytes()  # Java writes all blocks
            mode, ndim, width, height = struct.unpack_from(">HHII", block)
            assert (mode, ndim) == (0, 2)
            payload = zlib.decompress(block[12:], 31)
            values = struct.unpack(f">{width * height}{code[-1]}", payload)
            left, top = i * document["blockSize"][0], j * document["blockSize"][1]
            part = np.array(values, code).reshape(height, width)
            found[top : top + height, left : left + width] = part
    return document, found


def read_list(container: Path, path: str) -> tuple[dict[int, tuple[float, ...]], list[Any]]:
    """Read a list as ``loadInterestPoints`` and ``loadCorrespondencesV2`` do, and check types."""
    group = container / path / "interestpoints"
    attributes = json.loads((group / "attributes.json").read_text())
    assert attributes == {"pointcloud": "1.0.0", "type": "list", "list version": "1.0.0"}
    id_document, ids = read_dataset(group / "id", "Q")
    loc_document, places = read_dataset(group / "loc", "d")
    assert id_document["dataType"] == "uint64"
    assert loc_document["dataType"] == "float64"
    assert id_document["compression"] == loc_document["compression"] == GZIP
    n = loc_document["dimensions"][0]
    expected = ([1, 300000], [n, 300000]) if n else ([1], [1])
    assert (id_document["blockSize"], loc_document["blockSize"]) == expected
    points: dict[int, tuple[float, ...]] = {}
    if n:
        assert id_document["dimensions"] == [1, loc_document["dimensions"][1]]
        numbers = ids[:, 0].astype("i8").astype("i4").tolist()  # (int)
        points = dict(zip(numbers, map(tuple, places.tolist()), strict=True))
    group = container / path / "correspondences"
    attributes = json.loads((group / "attributes.json").read_text())
    assert attributes["correspondences"] == "2.0.0"
    others = {round(number): key for key, number in attributes["idMap"].items()}
    if not others:
        return points, []
    document, data = read_dataset(group / "data", "Q")
    assert document["dimensions"] == [4, len(data)]
    assert (document["dataType"], document["blockSize"]) == ("uint64", [1, 300000])
    assert document["compression"] == GZIP
    pairs = [
        (int(a), int(b), others[int(number)], -1 if int(c) == NONE else int(c))
        for a, b, number, c in data
    ]
    return points, pairs
