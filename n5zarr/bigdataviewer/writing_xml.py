"""Write BigDataViewer's and BigStitcher's XML: a whole project, or its loader.

spimdata ``XmlIoSpimData``, ``XmlIoViewSetups``, ``XmlIoTile``, ``XmlIoTimePoints``,
``XmlIoMissingViews``; bigdataviewer-core ``XmlIoN5ImageLoader``;
multiview-reconstruction 8.0 ``XmlIoAllenOMEZarrLoader`` and ``XmlIoSpimData2``, and 9 for Zarr v3.
All vectors are in the order x, y, z.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from urllib.parse import quote
from xml.etree import ElementTree

from n5zarr.bigdataviewer.description import Setup
from n5zarr.bigdataviewer.loader import LEFT_IN_PATHS
from n5zarr.bigdataviewer.registrations import View, ViewTransform, registration_element
from n5zarr.bigdataviewer.xml_text import elements_at, indented, numbers_text, parsed_xml, replaced
from n5zarr.errors import option_error

_LOADER = "SpimData/SequenceDescription/ImageLoader"
_BASE = "SpimData/BasePath"
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
# of BigStitcher, in its order; the first has a place
_OF_BIGSTITCHER = (
    "ViewInterestPoints",
    "BoundingBoxes",
    "PointSpreadFunctions",
    "StitchingResults",
    "IntensityAdjustments",
)
_INDICES = "0 0"  # of the axes c and t


def view_image(setup: int, timepoint: int) -> str:
    """Return BigStitcher's name of the image of a view in OME-Zarr.

    Examples
    --------
    >>> view_image(3, 0)
    's3-t0.zarr'
    """
    return f"s{setup}-t{timepoint}.zarr"


def n5_loader(container: str) -> ElementTree.Element:
    """Make the loader for a container of N5, with a path relative to the XML."""
    loader = ElementTree.Element("ImageLoader", format="bdv.n5", version="1.1")
    loader.append(_path("n5", container))
    return loader


def ome_loader(container: str, views: Iterable[View], *, is_zarr_v3: bool) -> ElementTree.Element:
    """Make the loader for a container of OME-Zarr, with an image of five axes for each view."""
    # BigStitcher takes images for Zarr v2 unless the XML says otherwise
    version = {"version": "3.1", "zarr.version": "ZarrV3"} if is_zarr_v3 else {"version": "3.0"}
    loader = ElementTree.Element("ImageLoader", {"format": "bdv.multimg.zarr", **version})
    loader.append(_path("zarr", container))
    groups = ElementTree.SubElement(loader, "zgroups")
    for setup, timepoint in views:
        given = {"setup": str(setup), "tp": str(timepoint), "path": view_image(setup, timepoint)}
        ElementTree.SubElement(groups, "zgroup", given, indicies=_INDICES)
    return loader


def _path(name: str, container: str) -> ElementTree.Element:
    """Make the element of a path relative to the XML, a part of a URI."""
    element = ElementTree.Element(name, type="relative")
    try:
        # a name with a colon would be a URI of its own
        element.text = quote(container, safe=LEFT_IN_PATHS.replace(":", ""))
    except UnicodeEncodeError as err:
        raise option_error(
            f"expected a name of characters that XML can hold, got {container!r}"
        ) from err
    return element


def with_loader(xml: bytes, loader: ElementTree.Element) -> bytes:
    """Return XML with another loader, whose path is relative to the XML; keep all other text."""
    span, *_ = elements_at(xml, _LOADER)  # as JDOM's getChild: the first one counts
    changes = [(span.start, span.end, indented(loader, 2))]
    base = elements_at(xml, _BASE)
    if base and xml[base[0].body : base[0].body_end].strip() not in (b"", b"."):
        changes.append((base[0].start, base[0].end, '<BasePath type="relative">.</BasePath>'))
    return replaced(xml, changes)


def project_xml(
    *,
    loader: ElementTree.Element,
    setups: Mapping[int, Setup],
    timepoints: Sequence[int],
    missing: Collection[View],
    registrations: Mapping[View, Sequence[ViewTransform]],
) -> bytes:
    """Write the XML of a project.

    Parameters
    ----------
    loader : Element
        Its images.
    setups : mapping of int to Setup
        The setups by number.
    timepoints : sequence of int
        Numbers of the time points.
    missing : collection of (int, int)
        Setups and time points of views without data.
    registrations : mapping of (int, int) to sequence of ViewTransform
        The transforms of each view, the one applied first last.

    Raises
    ------
    N5UnrepresentableError
        A name has a character that XML cannot hold (``kind="option"``).
    """
    root = ElementTree.Element("SpimData", version="0.2")
    ElementTree.SubElement(root, "BasePath", type="relative").text = "."
    sequence = ElementTree.SubElement(root, "SequenceDescription")
    sequence.append(loader)
    described = ElementTree.SubElement(sequence, "ViewSetups")
    described.extend(_setup(number, setup) for number, setup in setups.items())
    described.extend(_entities(setups))
    times = ElementTree.SubElement(sequence, "Timepoints", type="pattern")
    ElementTree.SubElement(times, "integerpattern").text = ",".join(map(str, timepoints))
    absent = ElementTree.SubElement(sequence, "MissingViews")
    for setup, timepoint in sorted(missing):
        ElementTree.SubElement(absent, "MissingView", timepoint=str(timepoint), setup=str(setup))
    placed = ElementTree.SubElement(root, "ViewRegistrations")
    placed.extend(registration_element(view, each) for view, each in registrations.items())
    for name in _OF_BIGSTITCHER:
        ElementTree.SubElement(root, name)
    ElementTree.indent(root)
    text = f"{_DECLARATION}{ElementTree.tostring(root, encoding='unicode')}\n"
    xml = text.encode(errors="surrogatepass")  # these are not well-formed
    problem = parsed_xml(xml)
    if isinstance(problem, str):
        raise option_error(f"expected names of characters that XML can hold, got {problem}")
    return xml


def _setup(number: int, setup: Setup) -> ElementTree.Element:
    element = ElementTree.Element("ViewSetup")
    size = ElementTree.Element("voxelSize")
    ElementTree.SubElement(size, "unit").text = setup.unit
    ElementTree.SubElement(size, "size").text = numbers_text(setup.voxel_size or ())
    attributes = ElementTree.Element("attributes")
    for name, value in setup.attributes.items():
        ElementTree.SubElement(attributes, name).text = str(value)
    ElementTree.SubElement(element, "id").text = str(number)
    ElementTree.SubElement(element, "name").text = setup.name
    ElementTree.SubElement(element, "size").text = " ".join(map(str, setup.size))
    element.extend([size, attributes])
    return element


def _entities(setups: Mapping[int, Setup]) -> Iterable[ElementTree.Element]:
    """Yield the names of channels, tiles and so on, each by its number."""
    kinds = dict.fromkeys(chain.from_iterable(setup.attributes for setup in setups.values()))
    for kind in kinds:
        listed = ElementTree.Element("Attributes", name=kind)
        entities = {s.attributes[kind]: s for s in setups.values() if kind in s.attributes}
        for number, setup in sorted(entities.items()):
            entity = ElementTree.SubElement(listed, kind.capitalize())
            ElementTree.SubElement(entity, "id").text = str(number)
            ElementTree.SubElement(entity, "name").text = setup.names[kind]
            if kind == "tile" and setup.tile_location:
                ElementTree.SubElement(entity, "location").text = numbers_text(setup.tile_location)
        yield listed
