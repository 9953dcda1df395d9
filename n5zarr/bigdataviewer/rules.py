"""Rules for the XML of a project, by which BigDataViewer and BigStitcher open it.

spimdata 84728ff: ``XmlHelpers`` and ``FastIntArrayParser`` (how numbers are parsed),
``XmlIoAbstractSpimData``, ``XmlIoAbstractSequenceDescription``, ``XmlIoBasicViewSetup`` (what a
setup has), ``XmlIoTimePoints``, ``XmlIoMissingViews``, ``XmlIoViewRegistration``,
``XmlIoViewTransform``, ``ImgLoaders.createXmlIoForFormat``. bigdataviewer-core 19911bd6:
``AbstractSpimSource.loadTimepoint`` (views need a registration unless they are missing).
multiview-reconstruction 58d0e65 (8.0): ``XmlIoBoundingBoxes``, ``XmlIoStitchingResults``,
``XmlIoViewInterestPoints``, ``XmlIoPointSpreadFunctions``, ``XmlIoIntensityAdjustments``,
``XmlIoSplitViewerImgLoader``, ``XmlIoAllenOMEZarrLoader``.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree

import numpy as np

from n5zarr.bigdataviewer.boxes import SPLIT
from n5zarr.bigdataviewer.description import parse_xml, problem_of, timepoints_in
from n5zarr.bigdataviewer.loader import path_problem
from n5zarr.bigdataviewer.registrations import view_in
from n5zarr.bigdataviewer.views import names_of
from n5zarr.bigdataviewer.xml_text import parsed_xml, whole_number
from n5zarr.store.info import ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from xml.etree.ElementTree import Element

    from n5zarr.bigdataviewer.description import Description
    from n5zarr.bigdataviewer.registrations import View
    from n5zarr.tools.validate.findings import Severity

__all__ = ["Problem", "problems_in"]

_MOST_NAMED = 3  # elements, or views, in a message


class Problem(NamedTuple):
    """A problem of a project.

    Parameters
    ----------
    message : str
        Where it is, what was expected, what is there, and the way out.
    severity : {"error", "warning", "note"}, optional
        Error: the project does not open, or lacks views. Warning: it opens, but something is odd.
    """

    message: str
    severity: Severity = "error"


class _Form(NamedTuple):
    """How Java parses a text, and how it is described."""

    pattern: str
    meaning: str


def _several(number: str, meaning: str, *counts: int) -> _Form:
    """Return the form of numbers at whose white space Java splits: none may come first."""
    patterns = (rf"{number}(?:\s+{number}){{{count - 1}}}\s*" for count in counts)
    return _Form("|".join(patterns), f"{meaning}, without white space before the first")


_INDEX = "[-+]?[0-9]{1,10}"
_REAL = r"[-+]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)[dDfF]?"
_INT = _Form(_INDEX, "a whole number without white space")
_INTS = _Form(f" *{_INDEX}(?: +{_INDEX}){{2}} *", "three whole numbers on one line")
_VECTOR = _several(_REAL, "three numbers", 3)
_NUMBER = _Form(rf"\s*{_REAL}\s*", "a number")
_LISTED = _Form(f"{_INDEX}(?:,{_INDEX})*", "whole numbers with commas between them")

_SETUPS = "SequenceDescription/ViewSetups"
_TIMES = "SequenceDescription/Timepoints"
_VIEW = "@timepoint", "@setup"
_PAIR = "@view_setup_a", "@view_setup_b", "@tp_a", "@tp_b"
# Path of elements, of which messages name what comes after a double slash; names of children
# (@ an attribute, ? not needed, . the text itself); the form of each.
_OF_SEQUENCE = (
    (f"{_SETUPS}//ViewSetup", ("id",), _INT),
    (f"{_SETUPS}//ViewSetup", ("size?",), _several("[-+]?[0-9]+", "three whole numbers", 3)),
    (f"{_SETUPS}//ViewSetup/voxelSize", ("size",), _VECTOR),
    (f"{_SETUPS}//ViewSetup/attributes/*", (".",), _Form(rf"\s*{_INDEX}\s*", "a whole number")),
    (f"{_SETUPS}//Attributes/*", ("id",), _INT),
    (f"{_SETUPS}//Attributes/Tile", ("location?",), _VECTOR),
    (f"{_SETUPS}//Attributes/Angle", ("axis?",), _VECTOR),
    (f"{_SETUPS}//Attributes/Angle", ("degrees?",), _NUMBER),
    (f"{_TIMES}[@type='list']//Timepoint", ("id",), _INT),
    ("SequenceDescription//Timepoints[@type='range']", ("first", "last"), _INT),
    ("SequenceDescription/MissingViews//MissingView", _VIEW, _INT),
)
_AFFINES = "ViewRegistrations//ViewRegistration/ViewTransform[@type='affine']"
_OF_PROJECT = (
    *_OF_SEQUENCE,
    ("ViewRegistrations//ViewRegistration", _VIEW, _INT),
    (_AFFINES, ("affine",), _several(_REAL, "twelve numbers", 12)),
    ("ViewInterestPoints//ViewInterestPointsFile", _VIEW, _INT),
    ("BoundingBoxes//BoundingBoxDefinition", ("min", "max"), _INTS),
    ("PointSpreadFunctions//*", _VIEW, _INT),
    ("StitchingResults//PairwiseResult", _PAIR, _LISTED),
    ("StitchingResults//PairwiseResult", ("shift",), _several(_REAL, "3 or 12 numbers", 3, 12)),
    ("StitchingResults//PairwiseResult", ("correlation",), _NUMBER),
    ("IntensityAdjustments//IntensityAdjustments", _VIEW, _INT),
    ("IntensityAdjustments//IntensityAdjustments", ("model",), _several(_REAL, "two numbers", 2)),
)
# formats of BigDataViewer and BigStitcher
_FORMATS = ("bdv.n5", "bdv.n5.cloud", "bdv.hdf5", "bdv.multimg.zarr", *SPLIT)
_NOT_READ = (
    "bdv.remote", "bigstitcher.smartspim", "catmaid", "ims", "openconnectome",
    "spimreconstruction.dhm", "spimreconstruction.filelist", "spimreconstruction.filemap2",
    "spimreconstruction.lightsheetz1", "spimreconstruction.micromanager",
    "spimreconstruction.simview", "spimreconstruction.stack.ij", "spimreconstruction.stack.loci",
    "spimreconstruction.wrapped.flatfield.default",
    "spimreconstruction.wrapped.flatfield.multiresolution",
)  # fmt: skip
_OF_OTHERS = {"bdv.n5.universe": "Mastodon", "bdv.n5.s3": "MoBIE", "bdv.ome.zarr": "MoBIE"}
_OF_OTHERS |= {"bdv.ome.zarr.s3": "MoBIE", "ome.zarr.s3": "MoBIE"}
_KINDS = ("angle", "channel", "illumination", "tile")


def problems_in(xml: bytes) -> Iterator[Problem]:
    """Find what keeps a project from opening, or is odd, in the XML alone."""
    root = parsed_xml(xml)
    if isinstance(root, str) or root.tag != "SpimData":
        yield Problem(f"expected BigDataViewer's XML, got {problem_of(xml)}")
        return
    if root.get("version", "0.2") != "0.2":
        text = f"expected version 0.2, got {root.get('version')!r}; BigDataViewer reads it as 0.2"
        yield Problem(f"SpimData: {text}", "warning")
    if root.find("ViewRegistrations") is None:
        yield _lacking("ViewRegistrations")
    if root.find("SequenceDescription") is None:
        yield _lacking("SequenceDescription")
        return
    yield from _forms(root, _OF_PROJECT)
    yield from _sequence(root)
    yield from _loader(root, xml)
    yield from _registrations(root)
    description = parse_xml(xml, any_loader=True)
    if description is not None and description.timepoints is not None:
        yield from _views(root, description)


def _lacking(name: str) -> Problem:
    return Problem(f"expected an element {name}, got none; add it")


def _of(names: str, text: str, severity: Severity = "error") -> Iterator[Problem]:
    """Yield a problem of some elements or views, if there are any."""
    if names:
        yield Problem(f"{names}: {text}", severity)


# ---------------------------------------------------------------------- numbers


def _forms(
    root: Element, table: Iterable[tuple[str, tuple[str, ...], _Form]], where: str = ""
) -> Iterator[Problem]:
    """Find texts that Java does not parse: where it reads numbers, it stops at each other text."""
    for path, names, form in table:
        above, _, below = path.partition("//")
        for name in names:
            elements = _elements(root.iterfind(above), below)
            texts = [(place, _text(element, name)) for place, element in elements]
            wrong = [(place, text) for place, text in texts if not _fits(form, name, text)]
            if wrong:
                key = "" if name == "." else f"{name.strip('@?')}: "
                got = "none" if wrong[0][1] is None else f"{wrong[0][1]!r:.60}"
                place = f"{where}{_some([place for place, _ in wrong])}: {key}"
                first = " (the first)" if len(wrong) > 1 else ""
                yield Problem(f"{place}expected {form.meaning}, got {got}{first}; correct it")


def _text(element: Element, name: str) -> str | None:
    if name[0] == "@":
        return element.get(name[1:])
    child = element.find(name.strip("?"))
    return None if child is None else child.text or ""


def _fits(form: _Form, name: str, text: str | None) -> bool:
    if text is None or re.fullmatch(form.pattern, text, re.ASCII) is None:
        return text is None and name[-1] == "?"
    return form is not _INT or -(2**31) <= int(text) < 2**31


def _elements(
    parents: Iterable[Element], path: str, above: str = ""
) -> Iterator[tuple[str, Element]]:
    """Yield the elements at a path below others, with their names."""
    tag, _, rest = path.partition("/")
    for number, child in enumerate(found for parent in parents for found in parent.iterfind(tag)):
        view = [f"{key} {child.get(key)}" for key in ("setup", "timepoint") if child.get(key)]
        named = child.findtext("id") or child.get("name") or child.findtext("Name")
        said = named or " ".join(view) or ("" if number == 0 else f"{number + 1}")
        name = " ".join([above + child.tag, *said.split()])
        if rest:
            yield from _elements([child], rest, f"{name}: ")
        else:
            yield name, child


def _some(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


# ---------------------------------------------------------------------- setups and time points


def _sequence(root: Element, where: str = "") -> Iterator[Problem]:
    """Check the setups and time points of a project, or of the images of a split one."""
    for tag in ("ViewSetups", "Timepoints"):
        if root.find(f"SequenceDescription/{tag}") is None:
            yield _lacking(f"{where}SequenceDescription/{tag}")
    setups = root.findall(f"{_SETUPS}/ViewSetup")
    if not setups:
        yield _lacking(f"{where}{_SETUPS}/ViewSetup")
    yield from _setup_list(setups, where)
    yield from _entities(root, setups, where)
    times = root.find(_TIMES)
    if times is not None and not timepoints_in(times):
        text = "a list, range or pattern of time points, 1 to 100000 of them"
        got = ElementTree.tostring(times, encoding="unicode").split()
        yield Problem(f"{where}Timepoints: expected {text}, got {' '.join(got):.60}; correct it")


def _setup_list(setups: list[Element], where: str) -> Iterator[Problem]:
    """Check that setups have a number of their own, and what viewers show of them."""
    counts = Counter(setup.findtext("id") for setup in setups)
    twice = [each for each in setups if counts[each.findtext("id")] > 1]
    text = "expected another id for each, got the same, of which Java keeps the last; renumber them"
    yield from _of(_named(twice, where), text)
    for above, tag in ((".", "size"), (".", "voxelSize"), ("voxelSize", "unit")):
        lacking = [e for e in setups if (at := e.find(above)) is not None and at.find(tag) is None]
        yield from _of(_named(lacking, where), f"expected {tag}, got none; add it", "warning")


def _named(setups: Iterable[Element], where: str) -> str:
    return _some([f"{where}ViewSetup {each.findtext('id')}" for each in setups])


def _entities(root: Element, setups: list[Element], where: str) -> Iterator[Problem]:
    """Check that the channel, tile, angle and illumination of each setup are described."""
    known = {
        each.get("name"): {whole_number(entity.findtext("id")) for entity in each}
        for each in root.iterfind(f"{_SETUPS}/Attributes")
    }
    lacking: dict[str, list[Element]] = defaultdict(list)
    alike: dict[tuple[int | None, ...], list[Element]] = defaultdict(list)
    for setup in setups:
        numbers = {each.tag: whole_number(each.text) for each in setup.iterfind("attributes/*")}
        alike[tuple(numbers.get(kind, 0) for kind in _KINDS)].append(setup)
        for kind, number in numbers.items():
            if number not in known.get(kind, ()):
                lacking[kind].append(setup)
    for kind, some in lacking.items():
        text = f"expected Attributes name={kind!r} with each {kind} that setups have, got "
        text += "others; add it" if kind in known else "none; add it"
        yield from _of(_named(some, where), text, "warning" if kind in known else "error")
    text = "expected another angle, channel, illumination or tile for each, got the same: "
    for some in alike.values():
        names = _named(some, where) if len(some) > 1 else ""
        yield from _of(names, text + "BigStitcher mixes them up; number them", "warning")


# ---------------------------------------------------------------------- image loaders


def _loader(root: Element, xml: bytes) -> Iterator[Problem]:
    """Check the image loader, also one inside of another, and the paths that it names."""
    loader, where = root.find("SequenceDescription/ImageLoader"), ""
    while loader is not None and loader.get("format") in SPLIT:
        where += "ImageLoader: "
        yield from _forms(loader, _OF_SEQUENCE, where)
        yield from _sequence(loader, where)
        loader = loader.find("ImageLoader")
    if loader is None:
        yield _lacking(f"{where}ImageLoader")
        return
    kind = loader.get("format") or "none"
    yield from _format(kind, f"{where}ImageLoader", problem_of(xml))
    paths = [root.find("BasePath"), *map(loader.find, ("n5", "zarr", "hdf5"))]
    for each in filter(None, map(partial(_path, is_uri=kind != "bdv.hdf5"), paths)):
        yield Problem(each)


def _path(element: Element | None, *, is_uri: bool) -> str:
    problem = None if element is None else path_problem(element, is_uri=is_uri)
    return "" if element is None or problem is None else f"{element.tag}: {problem}"


def _format(kind: str, where: str, problem: str | None) -> Iterator[Problem]:
    """Say which programs open the format of a loader, and what n5zarr finds wrong with it."""
    if kind in _NOT_READ:
        text = f"{kind}: n5zarr does not read these images: only the XML is checked"
        yield Problem(f"{where}: {text}", "note")
    elif kind in _OF_OTHERS:
        text = f"{kind} is a format of {_OF_OTHERS[kind]}, which other programs may not have"
        yield Problem(f"{where}: {text}", "note")
    elif kind not in _FORMATS:
        text = f"expected a format among {', '.join((*_FORMATS, *_NOT_READ))}"
        yield Problem(f"{where}: {text}, got {kind}; correct it")
        return
    if problem is not None and kind not in _NOT_READ:
        yield Problem(f"ImageLoader: expected one that names its images, got {problem}")


# ---------------------------------------------------------------------- views


def _registrations(root: Element) -> Iterator[Problem]:
    """Check the kinds of transforms, and that a view has one list of them."""
    found = [*root.iterfind("ViewRegistrations/ViewRegistration")]
    for kind in {t.get("type") for each in found for t in each.iterfind("ViewTransform")}:
        if kind not in ("affine", "generic"):
            yield Problem(f"ViewTransform: expected type 'affine', got {kind!r}; correct it")
    counts = Counter(view_in(each.attrib) for each in found)
    twice = [view for view, count in counts.items() if view is not None and count > 1]
    text = "expected one ViewRegistration, got more, of which Java keeps the last; remove others"
    yield from _of(names_of(twice), text, "warning")


def _views(root: Element, description: Description) -> Iterator[Problem]:
    """Check what the XML says of views against the views that it describes."""
    views = set(product(description.setups, description.timepoints or ()))
    models, present = description.registrations, views - description.missing
    if root.find("ViewRegistrations") is not None:
        text = "expected a ViewRegistration, got none; add one, or list the view in MissingViews"
        yield from _of(names_of(sorted(present - models.keys())), text)
    flat = [view for view in sorted(present & models.keys()) if _is_flat(models[view])]
    text = "expected affine transforms that can be inverted, got others, so that nothing is shown"
    yield from _of(names_of(flat), f"{text}; correct them")
    points = root.iterfind("ViewInterestPoints/ViewInterestPointsFile")
    pairs = root.iterfind("StitchingResults/PairwiseResult")
    named: dict[str, set[View | None]] = {
        "MissingView": {*description.missing},
        "ViewInterestPointsFile": {view_in(each.attrib) for each in points},
        "PairwiseResult": {view for each in pairs for view in _pair(each)},
    }
    text = "expected views of the project, got others; remove them"
    for name, some in named.items():
        others = names_of(sorted(view for view in some - views if view is not None))
        severity: Severity = "note" if name == "MissingView" else "warning"
        yield from _of(f"{name}: {others}" if others else "", text, severity)
    if description.loader.splits:
        yield from _boxes(description)


def _boxes(description: Description) -> Iterator[Problem]:
    """Check that each setup of a split project has a box in a setup that has images."""
    boxes, first = description.loader.splits[-1], description.loader.splits[0]
    text = "expected a SetupIdDefinition, got none; add it"
    lacking = ranges(description.setups.keys() - boxes.keys())
    yield from _of(f"setups {lacking}" if lacking else "", text)
    images = () if description.of_images is None else description.of_images.setups.keys()
    unknown = ranges({box.setup for box in first.values()} - {*images})
    text = f"expected ViewSetups in the ImageLoader, got {unknown}; correct them"
    yield from _of("SetupIdDefinition: OldId" if unknown else "", text)


def _pair(element: Element) -> Iterator[View | None]:
    """Yield the views of a stitching result."""
    for side in "ab":
        setups, times = (
            element.get(f"{key}_{side}", "").split(",") for key in ("view_setup", "tp")
        )
        for setup, timepoint in zip(setups, times, strict=False):
            yield view_in({"setup": setup, "timepoint": timepoint})


def _is_flat(rows: Sequence[float]) -> bool:
    matrix = np.reshape(rows, (3, 4))[:, :3] if rows else np.eye(3)  # others are found above
    return not (np.isfinite(matrix).all() and np.linalg.matrix_rank(matrix) == 3)
