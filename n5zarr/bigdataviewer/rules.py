"""Rules for the XML of a project, by which BigDataViewer and BigStitcher open it.

The sources are those of spimdata 1.0 at 84728ff, bigdataviewer-core at 19911bd6, and
multiview-reconstruction 8.0 at 58d0e65. Java stops at the first text that it cannot parse.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np

from n5zarr.bigdataviewer.boxes import SPLIT
from n5zarr.bigdataviewer.description import Description, parse_xml, problem_of, timepoints_in
from n5zarr.bigdataviewer.loader import MOST_VIEWS
from n5zarr.bigdataviewer.registrations import View, view_in
from n5zarr.bigdataviewer.views import names_of
from n5zarr.bigdataviewer.xml_text import parsed_xml, whole_number
from n5zarr.store.info import ranges
from n5zarr.tools.validate.findings import Severity

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


type Problem = tuple[Severity, str]
"""How bad a problem is, and where it is, what was expected, what is there, and the way out.

Error: the project does not open, or lacks views. Warning: it opens, but something is odd.
"""

_MOST_NAMED = 3  # elements in a message
_LOADER = "ImageLoader"
_NAMES = ("id", "@format", "@name", "Name", "NewId")

# ---------------------------------------------------------------------- texts

_I = "[-+]?[0-2]?[0-9]{1,9}"  # an int of Java
_R = r"[-+]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)[dDfF]?"
_FINITE = f"(?![-+]?(?:NaN|Infinity)){_R}"
_LEGAL = r"""(?:%[0-9A-Fa-f]{2}|[^%\s"<>\\^`{|}\[\]])"""  # what java.net.URI takes
_WHOLE = r"<\w+[^>]*>(?:/|\\|[A-Za-z][A-Za-z0-9+.-]*:)(?s:.*)"  # an absolute path, or a URI
_READ = ("bdv.n5", "bdv.n5.cloud", "bdv.hdf5", "bdv.multimg.zarr", *SPLIT)
_NOT_READ = (
    "bdv.remote", "bigstitcher.smartspim", "catmaid", "ims", "openconnectome",
    "spimreconstruction.dhm", "spimreconstruction.filelist", "spimreconstruction.filemap2",
    "spimreconstruction.lightsheetz1", "spimreconstruction.micromanager",
    "spimreconstruction.simview", "spimreconstruction.stack.ij", "spimreconstruction.stack.loci",
    "spimreconstruction.wrapped.flatfield.default",
    "spimreconstruction.wrapped.flatfield.multiresolution",
)  # fmt: skip
_OF_OTHERS = ("bdv.n5.universe", "bdv.n5.s3", "bdv.ome.zarr", "bdv.ome.zarr.s3", "ome.zarr.s3")


def _any_of(*names: str) -> str:
    return "|".join(map(re.escape, names))


def _vector(number: str, *counts: int) -> str:
    """Return the pattern of numbers at whose white space Java splits: none may come first."""
    return "|".join(rf"{number}(?:\s+{number}){{{count - 1}}}\s*" for count in counts)


_FIRST = "the first without white space before it"
# what is expected, and its pattern
_FORMS = {
    "element": ("an element", "(?s).*"),
    "version": ("0.2, as which BigDataViewer reads it", "0[.]2"),
    "int": ("a whole number without white space", _I),
    "trimmed int": ("a whole number", rf"\s*{_I}\s*"),
    "comma list": ("whole numbers with commas between them", f"{_I}(?:,{_I})*"),
    "indices": ("whole numbers with one space between them, or []", rf"\[\]|{_I}(?: {_I})*"),
    "3 ints": ("three whole numbers on one line", f" *{_I}(?: +{_I}){{2}} *"),
    "3 longs": (f"three whole numbers, {_FIRST}", _vector("[-+]?[0-9]+", 3)),
    "number": ("a number", rf"\s*{_R}\s*"),
    "2 numbers": (f"two numbers, {_FIRST}", _vector(_R, 2)),
    "3 numbers": (f"three numbers, {_FIRST}", _vector(_R, 3)),
    "shift": (f"3 or 12 numbers, {_FIRST}", _vector(_R, 3, 12)),
    "12 numbers": (f"twelve numbers that are finite, {_FIRST}", _vector(_FINITE, 12)),
    "transform": ("affine or generic", "affine|generic"),
    "times": ("list, range or pattern", "list|range|pattern"),
    "path": ("a path", ".+"),
    "format": (
        f"a format such as {', '.join(_READ)}",
        _any_of(*_READ, *_NOT_READ, *_OF_OTHERS),
    ),
    "own format": (
        "a format of BigDataViewer or BigStitcher, not one of MoBIE or Mastodon",
        f"(?!(?:{_any_of(*_OF_OTHERS)})$).*",
    ),
    "read format": (
        "images that n5zarr reads, which otherwise checks only the XML",
        f"(?!(?:{_any_of(*_NOT_READ)})$).*",
    ),
    "URI": (
        "type='relative' with a part of a URI (%20 for a space), or an absolute path",
        rf'<\w+ type="relative">{_LEGAL}+</\w+>|{_WHOLE}',
    ),
    "directory": (
        "type='relative' with a part of a URI that ends with /, or an absolute path",
        rf'<\w+ type="relative"(?: />|>(?:{_LEGAL}*/)?\.{{0,2}}</\w+>)|{_WHOLE}',
    ),
    "file": (
        "type='relative', or an absolute path",
        rf'<\w+ type="relative">(?s:.*)|{_WHOLE}',
    ),
}
_ZGROUP = ".//ImageLoader[@version='{}']/zgroups/zgroup"
# Elements; their children (?: if it is there), @attributes, . for the text or < for all; the form.
_RULES: tuple[tuple[Severity, str, str, str], ...] = (
    # XmlIoAbstractSpimData
    ("error", ".", "SequenceDescription ViewRegistrations", "element"),
    ("warning", ".", "@version?", "version"),
    # XmlHelpers.loadPathURI and loadPath; URI.resolve drops the last name of a path without /
    ("error", "BasePath", "<", "directory"),
    ("error", ".//ImageLoader/n5", "<", "URI"),
    ("error", ".//ImageLoader/zarr", "<", "URI"),
    ("error", ".//ImageLoader/hdf5", "<", "file"),
    # XmlIoAbstractSequenceDescription, also in a loader: XmlIoSplitViewerImgLoader
    ("error", ".//SequenceDescription", "ViewSetups Timepoints", "element"),
    ("error", "SequenceDescription", "ImageLoader", "element"),
    ("error", ".//SetupIds/..", "ImageLoader SequenceDescription", "element"),
    # ImgLoaders.createXmlIoForFormat
    ("error", ".//ImageLoader", "@format", "format"),
    ("note", ".//ImageLoader", "@format?", "own format"),
    ("note", ".//ImageLoader", "@format?", "read format"),
    # XmlIoBasicViewSetups, XmlIoBasicViewSetup; BigStitcher needs size and voxelSize
    ("error", ".//ViewSetups", "ViewSetup", "element"),
    ("error", ".//ViewSetup", "id", "int"),
    ("error", ".//ViewSetup", "size?", "3 longs"),
    ("warning", ".//ViewSetup", "size voxelSize", "element"),
    ("error", ".//ViewSetup/voxelSize", "size", "3 numbers"),
    ("warning", ".//ViewSetup/voxelSize", "unit", "element"),
    ("error", ".//ViewSetup/attributes/*", ".", "trimmed int"),
    # XmlIoEntity, XmlIoTile, XmlIoAngle
    ("error", ".//Attributes/*", "id", "int"),
    ("error", ".//Attributes/Tile", "location?", "3 numbers"),
    ("error", ".//Attributes/Angle", "axis?", "3 numbers"),
    ("error", ".//Attributes/Angle", "degrees?", "number"),
    # XmlIoTimePoints, XmlIoMissingViews
    ("error", ".//Timepoints", "@type", "times"),
    ("error", ".//Timepoints[@type='list']/Timepoint", "id", "int"),
    ("error", ".//Timepoints[@type='range']", "first last", "int"),
    ("error", ".//MissingView", "@timepoint @setup", "int"),
    # XmlIoSplitViewerImgLoader, XmlIoAllenOMEZarrLoader
    ("error", ".//SetupIdDefinition", "NewId OldId", "int"),
    ("error", ".//SetupIdDefinition", "min max", "3 longs"),
    ("error", ".//zgroup", "@setup", "int"),
    ("error", _ZGROUP.format("1.0"), "@timepoint", "int"),
    ("error", _ZGROUP.format("1.0"), "path", "path"),
    ("error", _ZGROUP.format("3.0"), "@tp", "int"),
    ("error", _ZGROUP.format("3.0"), "@path", "path"),
    ("error", _ZGROUP.format("3.0"), "@indicies", "indices"),
    # XmlIoViewRegistration, XmlIoViewTransform
    ("error", "ViewRegistrations/ViewRegistration", "@timepoint @setup", "int"),
    ("error", "ViewRegistrations/*/ViewTransform", "@type", "transform"),
    ("error", "ViewRegistrations/*/ViewTransform[@type='affine']", "affine", "12 numbers"),
    # XmlIoSpimData2: XmlIoViewInterestPoints, XmlIoBoundingBoxes, XmlIoPointSpreadFunctions
    ("error", "ViewInterestPoints/ViewInterestPointsFile", "@timepoint @setup", "int"),
    ("error", "BoundingBoxes/BoundingBoxDefinition", "min max", "3 ints"),
    ("error", "PointSpreadFunctions/*", "@timepoint @setup", "int"),
    # XmlIoStitchingResults, XmlIoIntensityAdjustments
    ("error", "StitchingResults/*", "@view_setup_a @view_setup_b @tp_a @tp_b", "comma list"),
    ("error", "StitchingResults/*", "shift", "shift"),
    ("error", "StitchingResults/*", "correlation", "number"),
    ("error", "IntensityAdjustments/*", "@timepoint @setup", "int"),
    ("error", "IntensityAdjustments/*", "model", "2 numbers"),
)
_KINDS = ("angle", "channel", "illumination", "tile")
# Elements whose children differ in some of theirs. Java's maps keep the last of equal ones;
# BigStitcher groups views by their attributes.
_DIFFERENT: tuple[tuple[Severity, str, str], ...] = (
    ("error", ".//ViewSetups ViewSetup", "id"),
    ("warning", ".//ViewSetups ViewSetup", " ".join(f"attributes/{kind}" for kind in _KINDS)),
    ("warning", "ViewRegistrations ViewRegistration", "@timepoint @setup"),
    ("error", ".//SetupIds SetupIdDefinition", "NewId"),
)


def problems_in(xml: bytes) -> Iterator[Problem]:
    """Find what keeps a project from opening, or is odd, in the XML alone."""
    root = parsed_xml(xml)
    if isinstance(root, str) or root.tag != "SpimData":
        yield "error", f"expected BigDataViewer's XML, got {problem_of(xml)}; take the right file"
        return
    wrong = [*_texts(root), *_repetitions(root)]
    yield from wrong
    if any(severity == "error" for severity, _ in wrong):
        return  # where Java stops
    yield from _entities(root)
    for each in root.iter("Timepoints"):
        if not timepoints_in(each):
            got = ElementTree.tostring(each, "unicode").strip()
            text = f"expected 1 to 100000 of them, got {got!r:.70}; correct them"
            yield "error", f"Timepoints: {text}"
    problem = problem_of(xml)
    if problem is not None and not any(e.get("format") in _NOT_READ for e in root.iter(_LOADER)):
        yield "error", f"ImageLoader: expected one that names its images, got {problem}; correct it"
    description = parse_xml(xml, any_loader=True)
    times = description and description.timepoints
    if description and times and len(description.setups) * len(times) <= MOST_VIEWS:
        yield from _views(root, description, times)
        yield from _boxes(description)


def _texts(root: Element) -> Iterator[Problem]:
    """Find texts that Java does not parse."""
    above = {child: parent for parent in root.iter() for child in parent}
    for severity, where, names, form in _RULES:
        meaning, pattern = _FORMS[form]
        fits = re.compile(pattern, re.ASCII).fullmatch
        for name in names.split():
            texts = [(each, _text(each, name.rstrip("?"))) for each in root.iterfind(where)]
            wrong = [
                (each, text)
                for each, text in texts
                if not (name.endswith("?") if text is None else fits(text))
            ]
            if wrong:
                key = name.strip("@?.<")
                got = "none; add it" if wrong[0][1] is None else f"{wrong[0][1]!r:.70}"
                got += "" if wrong[0][1] is None or severity == "note" else "; correct it"
                place = _named([each for each, _ in wrong], above)
                yield severity, f"{place}: {key}{key and ': '}expected {meaning}, got {got}"


def _text(element: Element, name: str) -> str | None:
    """Return the text of a child, an attribute, or the element; None if it is not there."""
    if name[0] == "@":
        return element.get(name[1:])
    if name == "<":  # with the only attribute that Java reads
        alone = ElementTree.Element(element.tag, {k: v for k, v in element.items() if k == "type"})
        alone.text = element.text
        return ElementTree.tostring(alone, "unicode")
    child = element.find(name)
    return None if child is None else child.text or ""


def _named(elements: list[Element], above: Mapping[Element, Element]) -> str:
    """Name elements, and what is around them if it has a name."""
    names = []
    for element in elements[:_MOST_NAMED]:
        names.append(_said(element) or element.tag)
        around = element
        while around in above:
            around = above[around]
            if said := _said(around):
                names[-1] = f"{said}: {names[-1]}"
    more = len(elements) - _MOST_NAMED
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def _said(element: Element) -> str:
    """Return the tag of an element with its number, name or view; empty if it has none."""
    said = next(filter(None, (_text(element, name) for name in _NAMES)), "").split()
    said += [f"{key} {element.get(key)}" for key in ("setup", "timepoint") if element.get(key)]
    return " ".join([element.tag, *said]) if said else ""


def _repetitions(root: Element) -> Iterator[Problem]:
    """Find elements that are not told apart."""
    for severity, where, names in _DIFFERENT:
        path, tag = where.split()
        for parent in root.iterfind(path):
            alike: dict[tuple[str | None, ...], list[Element]] = defaultdict(list)
            for each in parent.iterfind(tag):
                alike[tuple(_text(each, name) for name in names.split())].append(each)
            for key, some in alike.items():
                if len(some) > 1 and any(key):
                    kinds = re.sub("attributes/|@", "", names).replace(" ", ", ")
                    text = f"expected another {kinds} for each, got the same; correct them"
                    yield severity, f"{_named(some, {})}: {text}"


# ---------------------------------------------------------------------- references


def _entities(root: Element) -> Iterator[Problem]:
    """Find numbers of channels, tiles and so on that are not described: Java takes 0, or stops."""
    for setups in root.iterfind(".//ViewSetups"):
        kinds = {each.get("name"): each for each in setups.iterfind("Attributes")}
        known = {(k, whole_number(e.findtext("id"))) for k, each in kinds.items() for e in each}
        used = {(e.tag, whole_number(e.text)) for e in setups.iterfind("ViewSetup/attributes/*")}
        for kind in sorted({kind for kind, _ in used - known}):
            numbers = ranges(n for k, n in used - known if k == kind and n is not None)
            text = f"expected {kind} {numbers}, as ViewSetups have it, got none; add it"
            yield "warning" if kind in kinds else "error", f"Attributes {kind}: {text}"


def _views(root: Element, description: Description, times: Sequence[int]) -> Iterator[Problem]:
    """Check what the XML says of views against the views that it describes."""
    views = set(product(description.setups, times))
    models, present = description.registrations, views - description.missing
    named = {
        tag: {view_in(each.attrib) for each in root.iterfind(f"{tag}/*")}
        for tag in ("ViewInterestPoints", "PointSpreadFunctions", "IntensityAdjustments")
    }
    named["StitchingResults"] = {
        (int(setup), int(timepoint))
        for each in root.iterfind("StitchingResults/*")
        for side in "ab"
        for setup, timepoint in zip(
            each.attrib[f"view_setup_{side}"].split(","),
            each.attrib[f"tp_{side}"].split(","),
            strict=False,
        )
    }
    none = "expected a ViewRegistration, got none; add one, or list the view in MissingViews"
    flat = "expected transforms that can be inverted, got others; correct them"
    other = "expected views of the project, got others; remove them"
    found: list[tuple[Severity, str, Iterable[View | None]]] = [
        ("error", none, present - models.keys()),  # AbstractSpimSource.loadTimepoint
        ("error", flat, {view for view in present & models.keys() if _is_flat(models[view])}),
        ("note", f"MissingViews: {other}", description.missing - views),
        *(("warning", f"{tag}: {other}", some - views) for tag, some in named.items()),
    ]
    for severity, text, some in found:
        if some := sorted(filter(None, some)):
            yield severity, f"{names_of(some)}: {text}"


def _is_flat(rows: Sequence[float]) -> bool:
    with np.errstate(all="ignore"):  # very large numbers
        return bool(rows) and not abs(np.linalg.det(np.reshape(rows, (3, 4))[:, :3])) > 0


def _boxes(description: Description) -> Iterator[Problem]:
    """Check that each setup of a split project has a box in a setup that has images."""
    splits, of_images = description.loader.splits, description.of_images
    if splits and of_images is not None:  # XmlIoSplitViewerImgLoader
        lacking = ranges(description.setups.keys() - splits[-1].keys())
        unknown = ranges({box.setup for box in splits[0].values()} - of_images.setups.keys())
        if lacking:
            text = f"expected a SetupIdDefinition of each ViewSetup, got none of {lacking}"
            yield "error", f"SetupIds: {text}; add it"
        if unknown:
            text = f"expected ViewSetups of the images, got {unknown}"
            yield "error", f"SetupIds: OldId: {text}; correct it"
