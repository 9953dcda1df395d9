"""Check projects: the XML, the images that it names, and their container.

bigdataviewer-core 19911bd6: ``N5ImageLoader`` and ``DefaultN5Properties`` (type and factors are
those of the setup, all levels that the factors count are opened), ``DataTypeProperties``,
``AbstractSpimSource``. multiview-reconstruction 58d0e65 (8.0): ``AllenOMEZarrLoader``,
``AllenOMEZarrProperties``, ``InterestPointsN5``.
"""

from __future__ import annotations

import asyncio
import math
import posixpath
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from itertools import batched, pairwise, product
from typing import TYPE_CHECKING

from n5zarr._zarr import sync
from n5zarr.bigdataviewer.description import problem_of
from n5zarr.bigdataviewer.point_lists import CONTAINER, PACKED_CONTAINER, base_path, listed_in
from n5zarr.bigdataviewer.project import XmlFile, read_project, xml_file
from n5zarr.bigdataviewer.rules import Problem, problems_in
from n5zarr.bigdataviewer.shown_as_n5 import BdvImages
from n5zarr.bigdataviewer.split import N5Views
from n5zarr.bigdataviewer.views import names_of
from n5zarr.conventions.model import numbers
from n5zarr.errors import N5Error, N5UnsupportedError
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.data_type import DataType
from n5zarr.format.path import join
from n5zarr.storage.requests import read_each, read_key
from n5zarr.store.locating import Located
from n5zarr.store.location import named_root
from n5zarr.store.missing_nodes import existing_node
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.validate.check import check_of
from n5zarr.tools.validate.findings import finding
from n5zarr.tools.validate.gaps import Gaps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from n5zarr.bigdataviewer.description import Description
    from n5zarr.bigdataviewer.levels import StoredLevels, ViewLevels
    from n5zarr.bigdataviewer.project import Project
    from n5zarr.bigdataviewer.registrations import View
    from n5zarr.storage.place import Place
    from n5zarr.store.made_datasets import MadeDataset
    from n5zarr.tools.jobs.run import RunOptions
    from n5zarr.tools.validate.check import Check
    from n5zarr.tools.validate.findings import Finding

__all__ = ["ProjectCheck", "find_check"]

_VIEWS = 64  # opened at once
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
    file : XmlFile
        The XML.
    xml : bytes
        Its content.
    deep, expect_complete : bool
        As for the check of its container.
    """

    file: XmlFile
    xml: bytes
    deep: bool
    expect_complete: bool
    counts: Counter[str] = field(default_factory=Counter)
    gaps: Gaps = field(default_factory=Gaps)
    name: str = ""
    path: str = ""

    def __post_init__(self) -> None:
        self.name = str(self.file)

    def run(self, run: RunOptions, state: object = None) -> Iterator[Finding]:
        """Check the XML, then the images, then the container; yield each finding at once."""
        is_whole = run.division.part is None
        if is_whole:
            yield from _findings(self.file.name, problems_in(self.xml))
        if problem_of(self.xml) is not None:
            return
        try:
            project = read_project(self.file)
            inner = self._container(project)
        except (N5Error, FileNotFoundError) as err:
            is_limit = isinstance(err, N5UnsupportedError)
            yield from _findings(
                self.file.name, [Problem(f"its images: {err}", "note" if is_limit else "error")]
            )
            return
        self.name, self.path = inner.name, inner.path
        self.counts, self.gaps = inner.counts, inner.gaps
        is_broken = False
        if is_whole:
            for each in _findings(self.file.name, _images(project)):
                is_broken |= each.severity == "error"
                yield each
            yield from _findings(CONTAINER, _points(project))
        try:
            yield from inner.run(run, state)  # type: ignore[arg-type]
        except N5Error as err:
            if err.kind != "listing" and not is_broken:
                raise
            yield from _findings(
                self.file.name, [Problem(f"blocks are not checked: {err}", "warning")]
            )

    def _container(self, project: Project) -> Check:
        """Return the check of the container; raise if there is none."""
        located = Located("bdv", project.place, document=project)
        store, group = located.open(writes=False)
        with located.named():
            existing_node(store, group)
        return check_of(located, deep=self.deep, expect_complete=self.expect_complete)


def _findings(file: str, problems: Iterator[Problem] | Sequence[Problem]) -> Iterator[Finding]:
    for message, severity in problems:
        yield finding("project", "", message, file=file, severity=severity)


# ---------------------------------------------------------------------- images


def _images(project: Project) -> Iterator[Problem]:
    """Check the images of all views; one problem for all views that have it."""
    description, location = project.description, project.place.location
    times, types = description.timepoints or (), dict[int, str]()
    if isinstance(location, BdvImages):
        source = location.source
    else:
        store, group = Located("bdv", project.place).open(writes=False)
        yield from _setups(store, group, sorted(description.setups), types)
        views = tuple(product(sorted(description.setups), times))
        source = N5Views(store, group, views)
    found: dict[Problem, list[View]] = defaultdict(list)
    for some in batched(product(sorted(description.setups), times), _VIEWS):
        for view, levels in zip(some, sync(_opened(source, some)), strict=True):
            for problem in _view(view, levels, description, types):
                found[problem].append(view)
    for (message, severity), affected in found.items():
        yield Problem(f"{names_of(affected)}: {message}", severity)


async def _opened(source: ViewLevels, views: Sequence[View]) -> list[StoredLevels | N5Error | None]:
    """Open the levels of views; None for a view without an image."""
    known = set(source.views)

    async def opened(view: View) -> StoredLevels | N5Error | None:
        if view not in known:
            return None
        try:
            levels = await source.levels(view)
        except N5Error as err:
            return err
        return levels if levels.stored else None

    return await asyncio.gather(*map(opened, views))


def _setups(
    store: N5Store, group: str, setups: Sequence[int], types: dict[int, str]
) -> Iterator[Problem]:
    """Check the documents of setups in N5, which Java needs; take the types of setups."""
    for number in setups:
        node = store.node(join(group, f"setup{number}"))
        if node is None:
            continue  # its views are missing
        kind, factors = (node.attributes.get(k) for k in ("dataType", "downsamplingFactors"))
        at = f"setup{number}/{ATTRIBUTES_JSON}"
        way = "n5zarr convert to a new XML writes it"
        if isinstance(kind, str) and kind in _TYPES:
            types[number] = kind
        else:
            yield Problem(f"{at}: dataType: expected a type of numbers, got {kind!r:.40}; {way}")
        each = factors if isinstance(factors, list) else []
        if not each or None in (numbers(by, 3) for by in each):
            text = f"expected three numbers for each level, got {factors!r:.40}"
            yield Problem(f"{at}: downsamplingFactors: {text}; {way}")


def _view(
    view: View,
    levels: StoredLevels | N5Error | None,
    description: Description,
    types: dict[int, str],
) -> Iterator[Problem]:
    """Check the levels of a view; ``types`` are those of setups, filled here."""
    if view in description.missing:
        if levels is not None:
            yield Problem("listed in MissingViews, but has an image; remove it there", "warning")
    elif levels is None:
        yield Problem("expected an image, got none; restore it, or list it in MissingViews")
    elif isinstance(levels, N5Error):
        yield Problem(str(levels))
    else:
        lacking = [f"s{n}" for n in range(len(levels.factors)) if n not in levels.stored]
        if lacking:
            text = f"expected {len(levels.factors)} levels, got none of {', '.join(lacking)}"
            yield Problem(f"{text}; n5zarr pyramid writes them")
        yield from _factors(levels)
        kind = types.setdefault(view[0], next(iter(levels.stored.values())).data_type.value)
        for number, dataset in sorted(levels.stored.items()):
            yield from _level(f"s{number}", dataset, kind)
        size = description.setups[view[0]].size
        finest = levels.stored.get(0)
        if finest is not None and size and tuple(size) != tuple(finest.dimensions):
            text = f"expected the size of its setup, {[*size]}, got {[*finest.dimensions]}"
            yield Problem(f"s0: {text}; correct the size in the XML", "warning")


def _factors(levels: StoredLevels) -> Iterator[Problem]:
    """Check that the first level is full resolution, and each one after it is coarser."""
    listed = [tuple(by) for by in levels.factors]
    if any(by != 1 for by in listed[0]):
        text = f"expected the factors 1, 1, 1 of s0, got {[*listed[0]]}"
        yield Problem(f"{text}: it is shown at another place; correct them", "warning")
    for finer, coarser in pairwise(listed):
        is_coarser = math.prod(coarser) > math.prod(finer)
        if not is_coarser or any(a > b for a, b in zip(finer, coarser, strict=True)):
            text = f"expected levels from fine to coarse, got {[*coarser]} after {[*finer]}"
            yield Problem(f"{text}; correct their order", "warning")
    finest = levels.stored.get(0)
    for number, by in enumerate(listed):
        level = levels.stored.get(number)
        if level is not None and finest is not None and number:
            each = zip(finest.dimensions, by, level.dimensions, strict=True)
            if any(abs(n / f - m) > 1 for n, f, m in each if f > 0):
                text = f"expected the size {[*finest.dimensions]} divided by {[*by]}"
                yield Problem(f"s{number}: {text}, got {[*level.dimensions]}", "warning")


def _level(name: str, dataset: MadeDataset, kind: str) -> Iterator[Problem]:
    """Check that Java can show a level."""
    if dataset.data_type.value != kind:
        text = f"expected {kind}, the type of its setup, got {dataset.data_type.value}"
        yield Problem(f"{name}: {text}; correct the setup's, or convert the image")
    extent = [min(b, n) for b, n in zip(dataset.block_size, dataset.dimensions, strict=True)]
    if math.prod(extent) > _LARGEST:
        text = f"expected blocks of at most {_LARGEST} elements, got {extent}"
        yield Problem(f"{name}: {text}; convert it with smaller chunks")


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
        yield Problem(str(err), "warning")
        return
    absent = [each.path for each, data in zip(lists, documents, strict=True) if data is None]
    if absent:
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        text = "expected a list of interest points, which the XML names, got none"
        yield Problem(f"{absent[0]}{more}: {text}; restore it, or detect points again", "warning")


def _beside(project: Project, name: str) -> N5Store:
    file = project.file
    return N5Store(
        file.place_for(file.beside(posixpath.join(base_path(project.xml), name))), read_only=True
    )
