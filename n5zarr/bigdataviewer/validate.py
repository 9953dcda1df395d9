"""Check projects: the XML, then the container, then the images that the XML describes.

bigdataviewer-core 19911bd6: ``N5ImageLoader`` and ``DefaultN5Properties`` (type and factors are
those of the setup, all levels that the factors count are opened), ``DataTypeProperties``.
multiview-reconstruction 8.0, 58d0e65: ``AllenOMEZarrProperties``, ``InterestPointsN5``.
"""

from __future__ import annotations

import math
import os
import posixpath
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from n5zarr.bigdataviewer.description import Setup, problem_of
from n5zarr.bigdataviewer.point_lists import CONTAINER, PACKED_CONTAINER, base_path, listed_in
from n5zarr.bigdataviewer.project import Project, XmlFile, read_project, xml_file
from n5zarr.bigdataviewer.registrations import View
from n5zarr.bigdataviewer.rules import Problem, problems_in
from n5zarr.bigdataviewer.shown_as_n5 import BdvImages
from n5zarr.bigdataviewer.views import names_of
from n5zarr.conventions.model import numbers
from n5zarr.errors import N5Error, N5UnsupportedError
from n5zarr.format.attributes import ATTRIBUTES_JSON, DatasetAttributes
from n5zarr.format.data_type import DataType
from n5zarr.format.path import join
from n5zarr.storage.place import Place
from n5zarr.storage.requests import read_each, read_key
from n5zarr.store.locating import Located
from n5zarr.store.location import named_root
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.jobs.run import RunOptions
from n5zarr.tools.validate.check import ContainerCheck, check_of
from n5zarr.tools.validate.findings import Finding, Severity, finding
from n5zarr.tools.validate.gaps import Gaps

_TYPES = {kind.value for kind in DataType if kind.is_numeric}
_LARGEST = 2**31 - 1  # elements of an array in Java


def find_check(
    place: Place, path: str, *, deep: bool, expect_complete: bool
) -> ProjectCheck | None:
    """Return a check of the project whose XML is at a location; None of anything else.

    Raises
    ------
    FileNotFoundError
        The XML does not exist.
    """
    root = place if place.format == "bdv" else named_root(place, "bdv", "zarr") or place
    file = xml_file(replace(root, path=""))
    if file is None or join(root.path, path):
        return None
    return ProjectCheck(file, file.read(), deep, expect_complete)


@dataclass
class ProjectCheck:
    """A check of a project, while it runs.

    Parameters
    ----------
    file, xml : XmlFile, bytes
        The XML, and its content.
    deep, expect_complete : bool
        As for the check of its container.
    """

    file: XmlFile
    xml: bytes
    deep: bool
    expect_complete: bool
    counts: Counter[str] = field(default_factory=Counter)
    gaps: Gaps = field(default_factory=Gaps)
    path: str = ""

    @property
    def name(self) -> str:
        """Name of the XML."""
        return str(self.file)

    def run(
        self, run: RunOptions, state: str | os.PathLike[str] | None = None
    ) -> Iterator[Finding]:
        """Check the XML, the container, then the images; yield each finding at once."""
        is_whole = run.division.part is None  # parts check blocks only
        if is_whole:
            yield from self._findings(problems_in(self.xml))
        if problem_of(self.xml) is not None:
            return
        try:
            project = read_project(self.file)
            located = Located("bdv", project.place, document=project)
            inner = check_of(located, deep=self.deep, expect_complete=self.expect_complete)
        except (N5Error, FileNotFoundError) as err:
            is_limit = isinstance(err, N5UnsupportedError)
            yield from self._findings([("note" if is_limit else "error", f"its images: {err}")])
            return
        self.counts, self.gaps = inner.counts, inner.gaps
        try:
            yield from inner.run(run, state)
            if is_whole:
                yield from self._findings(_images(project, inner))
        except (N5Error, FileNotFoundError) as err:
            is_unlisted = isinstance(err, N5Error) and err.kind == "listing"
            is_made = isinstance(project.place.location, BdvImages)  # of images, one is broken
            if isinstance(err, N5Error) and not is_unlisted and not is_made:
                raise
            severity: Severity = "warning" if is_unlisted else "error"
            yield from self._findings([(severity, f"its images: {err}")])
            return
        if is_whole:
            yield from self._findings(_points(project))

    def _findings(self, problems: Iterator[Problem] | Sequence[Problem]) -> Iterator[Finding]:
        for severity, message in problems:
            yield finding("project", "", message, file=self.file.name, severity=severity)


# ---------------------------------------------------------------------- images


def _images(project: Project, check: ContainerCheck) -> Iterator[Problem]:
    """Check the images of all views; one problem for all views that have it."""
    description = project.description
    found: dict[Problem, list[View]] = defaultdict(list)
    for number, setup in sorted(description.setups.items()):
        group = join(check.path, f"setup{number}")
        node = check.store.node(group)
        attributes = {} if node is None else node.attributes
        listed = attributes.get("downsamplingFactors")
        factors = [numbers(each, 3) for each in listed] if isinstance(listed, list) else []
        kind = attributes.get("dataType")
        if kind not in _TYPES or not factors or None in factors:
            got = {key: attributes.get(key) for key in ("dataType", "downsamplingFactors")}
            text = f"expected a type of numbers, and three factors of each level, got {got!r:.90}"
            yield "error", f"setup{number}: {text}; n5zarr convert to another XML writes them"
            continue
        for time in description.timepoints or ():
            paths = [f"{group}/timepoint{time}/s{level}" for level in range(len(factors))]
            levels = [check.datasets.get(path) for path in paths]
            is_missing = (number, time) in description.missing
            for problem in _levels(levels, factors, kind, setup, is_missing=is_missing):
                found[problem].append((number, time))
    for (severity, message), views in found.items():
        yield severity, f"{names_of(views)}: {message}"


def _levels(
    levels: Sequence[DatasetAttributes | None],
    factors: Sequence[tuple[float, ...] | None],
    kind: object,
    setup: Setup,
    *,
    is_missing: bool,
) -> Iterator[Problem]:
    """Check the levels of a view, by the factors and the type of its setup."""
    finest, absent = levels[0], [f"s{n}" for n, level in enumerate(levels) if level is None]
    if len(absent) < len(levels) and is_missing:
        yield "warning", "listed in MissingViews, but has an image; remove it there"
    elif is_missing:
        return
    elif len(absent) == len(levels):
        yield "error", "expected an image, got none; restore it, or list it in MissingViews"
    elif absent:
        text = f"expected {len(levels)} levels, got no {', '.join(absent)}"
        yield "error", f"{text}; n5zarr pyramid writes them"
    for number, (level, by) in enumerate(zip(levels, factors, strict=True)):
        if level is not None:
            for severity, text in _level(  # the container's check compares all others with s0
                level, by or (), setup.size if finest is None or number == 0 else (), kind
            ):
                yield severity, f"s{number}: {text}"


def _level(
    level: DatasetAttributes, by: Sequence[float], finest: Sequence[int], kind: object
) -> Iterator[Problem]:
    """Check a level by its factors, the size at full resolution, and the type of its setup."""
    own, size, blocks = level.data_type.value, [*level.dimensions], [*level.block_size]
    fits = all(f > 0 and abs(n / f - m) <= 1 for n, f, m in zip(finest, by, size, strict=False))
    if own != kind or len(size) != 3:
        text = f"expected three dimensions of {kind}, as its setup states, got {own}, {size}"
        yield "error", f"{text}; correct the setup's document, or convert the image"
    if math.prod(map(min, blocks, size)) > _LARGEST:
        text = f"expected blocks of at most {_LARGEST} elements, got {blocks}"
        yield "error", f"{text}; convert it with smaller chunks"
    if not fits or (set(by) == {1} and finest and [*finest] != size):
        text = f"expected the size {[*finest]} divided by {[*by]}, got {size}"
        yield "warning", f"{text}; correct the size in the XML, or downsamplingFactors"


# ---------------------------------------------------------------------- interest points


def _points(project: Project) -> Iterator[Problem]:
    """Check that the lists of interest points exist; those in Zarr are not looked at."""
    try:
        lists = listed_in(project.xml)
        if not lists or _beside(project, PACKED_CONTAINER).run(read_key("zarr.json")) is not None:
            return
        keys = [join(each.path, "interestpoints", ATTRIBUTES_JSON) for each in lists]
        documents = _beside(project, CONTAINER).run(read_each(keys))
    except N5Error as err:
        yield "warning", str(err)
        return
    absent = [each.path for each, data in zip(lists, documents, strict=True) if data is None]
    if absent:
        text = f"expected {len(lists)} lists of interest points, got no {absent[0]}"
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        yield "warning", f"{CONTAINER}: {text}{more}; restore it, or detect points again"


def _beside(project: Project, name: str) -> N5Store:
    """Open a container beside the XML."""
    place = project.file.beside(posixpath.join(base_path(project.xml), name))
    return N5Store(project.file.place_for(place), read_only=True)
