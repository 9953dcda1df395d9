"""Read the XML of a project by the rules of Java, without n5zarr.

spimdata 84728ff (2024): ``XmlHelpers`` (numbers are parsed without a trim, arrays are split at
white space, which must not come first; ``loadPathURI``), ``XmlIoAbstractSequenceDescription``,
``XmlIoBasicViewSetups`` (attributes are the four of ``ViewSetupAttributes``, each with an entry in
the lists), ``XmlIoTimePoints``, ``XmlIoMissingViews``, ``XmlIoViewRegistrations``,
``XmlIoViewTransform``.
bigdataviewer-core ``XmlIoN5ImageLoader``; multiview-reconstruction 58d0e65 (8.0)
``XmlIoAllenOMEZarrLoader`` and ``XmlIoSpimData2``, and the former of the branch zarrv3 (9), which
opens what 8.0 opens.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

KINDS = {"channel": "Channel", "tile": "Tile", "angle": "Angle", "illumination": "Illumination"}


class Setup(NamedTuple):
    """A ``ViewSetup``: vectors are x, y, z."""

    name: str
    size: tuple[int, ...]
    unit: str
    voxel_size: tuple[float, ...]
    names: dict[str, str]
    location: tuple[float, ...] | None


class SpimData(NamedTuple):
    """What Java reads."""

    loader: str
    container: str
    zarr_format: int | None
    images: dict[tuple[int, int], tuple[str, tuple[int, ...]]]
    setups: dict[int, Setup]
    timepoints: list[int]
    missing: set[tuple[int, int]]
    transforms: dict[tuple[int, int], list[tuple[str, npt.NDArray[np.float64]]]]

    def model(self, setup: int, timepoint: int) -> npt.NDArray[np.float64]:
        """Return the matrix of a view, as ``ViewRegistration.updateModel`` concatenates it."""
        model = np.eye(4)
        for _, matrix in self.transforms[setup, timepoint]:
            model = model @ np.vstack([matrix, (0, 0, 0, 1)])
        return model[:3]


def parse_int(text: str | None) -> int:
    """Parse as ``Integer.parseInt``."""
    assert text is not None
    assert re.fullmatch("[-+]?[0-9]+", text), text
    assert -(2**31) <= int(text) < 2**31, text
    return int(text)


def load_path_uri(element: ElementTree.Element | None) -> str:
    """Decode a relative path as ``XmlHelpers.loadPathURI``, and ``new File(uri)`` after it.

    ``basePath.resolve(path)`` parses the path as ``java.net.URI``: characters that RFC 2396 does
    not allow raise a URISyntaxException, but others than ASCII may stand unquoted, unless they are
    white space or control characters. A scheme before a colon makes it a URI of its own; ``File``
    takes neither a query nor a fragment.
    """
    assert element is not None
    assert element.attrib["type"] == "relative"
    path = element.text or ""
    legal = r"(?:[A-Za-z0-9_.!~*'();/:@&=+$,-]|%[0-9A-Fa-f]{2}|[^\x00-\x9f\s])+"
    assert re.fullmatch(legal, path), f"URISyntaxException: {path}"
    assert ":" not in path.partition("/")[0], f"another scheme: {path}"
    return unquote(path)


def doubles(text: str | None) -> tuple[float, ...]:
    """Split as ``XmlHelpers.getDoubleArray``, and parse as ``Double.parseDouble``."""
    assert text is not None
    entries = re.sub(r"\s+\Z", "", text)
    return tuple(map(float, re.split(r"\s+", entries)))


def read(xml: Path) -> SpimData:
    root = ElementTree.fromstring(xml.read_bytes())  # noqa: S314 - ours
    assert root.tag == "SpimData"
    assert root.attrib["version"] == "0.2"
    sequence = root.find("SequenceDescription")
    assert sequence is not None
    setups, timepoints = read_setups(sequence.find("ViewSetups")), read_timepoints(sequence)
    loader = sequence.find("ImageLoader")
    assert loader is not None
    kind = loader.attrib["format"]
    assert load_path_uri(root.find("BasePath")) == "."
    container = load_path_uri(loader.find({"bdv.n5": "n5", "bdv.multimg.zarr": "zarr"}[kind]))
    missing = {view(e) for e in sequence.iterfind("MissingViews/MissingView")}
    transforms = {
        view(e): [transform(t) for t in e.iterfind("ViewTransform")]
        for e in root.iterfind("ViewRegistrations/ViewRegistration")
    }
    images, zarr_format = {}, None
    if kind == "bdv.multimg.zarr":
        # 9 writes the tag with version 3.1; without it, 8.0 and 9 open Zarr v2
        zarr_format = 3 if loader.attrib.get("zarr.version") == "ZarrV3" else 2
        assert loader.attrib["version"] == {2: "3.0", 3: "3.1"}[zarr_format]
        for group in loader.iterfind("zgroups/zgroup"):
            key = parse_int(group.attrib["setup"]), parse_int(group.attrib["tp"])
            indices = tuple(map(parse_int, group.attrib["indicies"].split(" ")))
            images[key] = (group.attrib["path"], indices)
    for name in ("ViewInterestPoints", "BoundingBoxes", "PointSpreadFunctions"):
        assert root.find(name) is not None
    return SpimData(kind, container, zarr_format, images, setups, timepoints, missing, transforms)


def view(element: ElementTree.Element) -> tuple[int, int]:
    return parse_int(element.attrib["setup"]), parse_int(element.attrib["timepoint"])


def transform(element: ElementTree.Element) -> tuple[str, npt.NDArray[np.float64]]:
    """Read ``affine``, twelve numbers by rows."""
    assert element.attrib["type"] == "affine"
    rows = doubles(element.findtext("affine"))
    assert len(rows) == 12
    return element.findtext("Name") or "", np.reshape(rows, (3, 4))


def read_setups(element: ElementTree.Element | None) -> dict[int, Setup]:
    """Read the setups, each with one of every kind of attribute."""
    assert element is not None
    listed: dict[str, dict[int, ElementTree.Element]] = {}
    for kind in element.iterfind("Attributes"):
        name = kind.attrib["name"]
        entries = {parse_int(e.findtext("id")): e for e in kind.iterfind(KINDS[name])}
        assert len(entries) == len(kind) > 0
        listed[name] = entries
    setups = {}
    for each in element.iterfind("ViewSetup"):
        used = {e.tag: listed[e.tag][parse_int(e.text)] for e in each.iterfind("attributes/*")}
        assert used.keys() == KINDS.keys()  # BigStitcher groups views by each of them
        location = used["tile"].find("location")
        setups[parse_int(each.findtext("id"))] = Setup(
            name=each.findtext("name") or "",
            size=tuple(map(parse_int, re.split(r"\s+", each.findtext("size") or ""))),
            unit=each.findtext("voxelSize/unit") or "",
            voxel_size=doubles(each.findtext("voxelSize/size")),
            names={kind: entity.findtext("name") or "" for kind, entity in used.items()},
            location=None if location is None else doubles(location.text),
        )
    return setups


def read_timepoints(sequence: ElementTree.Element) -> list[int]:
    """Read ``integerpattern``: numbers, and ranges ``first-last:step``."""
    element = sequence.find("Timepoints")
    assert element is not None
    assert element.attrib["type"] == "pattern"
    found: list[int] = []
    for part in (element.findtext("integerpattern") or "").split(","):
        numbers = [parse_int(number) for number in re.split("[-:]", part)]
        first, last, step = [*numbers, numbers[-1], 1][:3]
        found += range(first, last + 1, step)
    return found
