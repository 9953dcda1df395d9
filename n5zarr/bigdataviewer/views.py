"""Find the setups, time points and levels of BigDataViewer's data in a container."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

from n5zarr.bigdataviewer.description import Description
from n5zarr.bigdataviewer.registrations import View
from n5zarr.container.axes import Placed, read_placed
from n5zarr.container.memory import Node
from n5zarr.conventions.bdv import view_of
from n5zarr.errors import N5Warning
from n5zarr.format.attributes import ATTRIBUTES_JSON, GroupAttributes
from n5zarr.format.path import join
from n5zarr.shown.made_datasets import MadeDatasets
from n5zarr.storage.not_found import NotFoundError
from n5zarr.storage.place import Place
from n5zarr.storage.requests import List, Steps, read_each
from n5zarr.store.info import ranges
from n5zarr.store.locating import Located
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.dataset_view import DatasetView

_MOST_LOOKED_AT = 1000  # views
_MOST_NAMED = 20


class SetupLevel(NamedTuple):
    """One level of a setup at one time point: a dataset."""

    path: str
    dataset: DatasetView

    def placed(self, store: N5Store, description: Description | None) -> Placed:
        """Read its axes."""
        numbers = view_of(tuple(self.path.split("/")))
        known = description.view(*numbers) if description and numbers else None
        return store.run(read_placed(store.container.nodes, self.path, self.dataset, setup=known))

    def below(self, group: str) -> str:
        """Return the path below the group of the setups."""
        return self.path.removeprefix(group).strip("/")


type Levels = dict[str, dict[int, SetupLevel]]
"""The datasets of a setup, by level and time point."""


def _numbered(store: N5Store, path: str, pattern: str) -> list[tuple[int, str, Node]]:
    """List the children whose names are a word and a number, sorted by the number."""
    numbered: list[tuple[int, str, Node]] = []
    for name, child in store.run(store.container.nodes.children(path)):
        match = re.fullmatch(pattern, name)
        if match and isinstance(child, GroupAttributes | DatasetView):
            numbered.append((int(match.group(1)), name, child))
    return sorted(numbered, key=lambda entry: entry[0])


def find_views(store: N5Store, group: str) -> dict[int, Levels]:
    """List the levels of each setup."""
    views: dict[int, Levels] = {}
    for setup, setup_name, node in _numbered(store, group, r"setup([0-9]+)"):
        if not isinstance(node, GroupAttributes):
            continue
        levels: Levels = {}
        above = join(group, setup_name)
        for number, name, _ in _numbered(store, above, r"timepoint([0-9]+)"):
            for _, level, dataset in _numbered(store, join(above, name), r"s([0-9]+)"):
                if isinstance(dataset, DatasetView):
                    view = SetupLevel(join(above, name, level), dataset)
                    levels.setdefault(level, {})[number] = view
        if levels:
            views[setup] = levels
    return views


def described_views(
    store: N5Store, group: str, views: dict[int, Levels], description: Description
) -> dict[int, Levels]:
    """Return the views that the XML describes and does not list as missing; warn of differences.

    Raises
    ------
    FileNotFoundError
        The XML describes no view that the container holds.
    """
    found = {(s, t) for s, levels in views.items() for v in levels.values() for t in v}
    setups, timepoints = set(description.setups), set(description.timepoints or ())
    n_missing = (Counter(each) for each in zip(*description.missing, strict=True))
    of_setup, of_timepoint = n_missing if description.missing else (Counter(), Counter())
    differing = [
        _Difference(
            "setup",
            setups,
            {s for s, _ in found},
            {s for s in setups if not timepoints or of_setup[s] < len(timepoints)},
        ),
        _Difference(
            "timepoint",
            timepoints,
            {t for _, t in found},
            {t for t in timepoints if not setups or of_timepoint[t] < len(setups)},
        ),
    ]
    others = [each.listed and each.found - each.listed for each in differing]
    kept = {(s, t) for s, t in found if s not in others[0] and t not in others[1]}
    kept -= description.missing
    if not kept:
        message = f"{store}: /{group}: expected views that {description.name} describes, got none"
        raise NotFoundError("; ".join([message, *(each.both() for each in differing)]))
    for each in differing:
        if problem := each.problem():
            message = f"{store}: /{group}: {description.name}: {each.both()}: {problem}"
            warnings.warn(message, N5Warning, stacklevel=4)
    known = found | description.missing
    both = (sorted(each.found & each.listed) for each in differing)
    single = [
        (setup, timepoint) for setup, timepoint in product(*both) if (setup, timepoint) not in known
    ]
    if single:
        message = f"{store}: /{group}: {description.name}: without data: {names_of(single)}"
        warnings.warn(message, N5Warning, stacklevel=4)
    described: dict[int, Levels] = {}
    for setup, levels in views.items():
        left = {k: {t: v for t, v in by.items() if (setup, t) in kept} for k, by in levels.items()}
        if any(left.values()):
            described[setup] = {level: by_time for level, by_time in left.items() if by_time}
    return described


def views_without_images(place: Place, description: Description) -> list[View]:
    """Return the views that the XML describes, does not list as missing, and that have no image.

    None are looked for if there are many.
    """
    times = description.timepoints or ()
    if len(description.setups) * len(times) > _MOST_LOOKED_AT:
        return []
    views = product(sorted(description.setups), times)
    expected = [view for view in views if view not in description.missing]
    store, group = Located("bdv", place).open(writes=False)
    listed: list[Any]
    paths = [join(group, f"setup{setup}", f"timepoint{timepoint}") for setup, timepoint in expected]
    if isinstance(store.store, MadeDatasets):  # whose listing raises the error of a broken image
        listed = store.run(read_each([join(path, ATTRIBUTES_JSON) for path in paths]))
    else:
        listed = store.run(_listed(paths))
    return [view for view, each in zip(expected, listed, strict=True) if not each]


def _listed(paths: Sequence[str]) -> Steps[list[Any]]:
    return list((yield [List(path, few=True) for path in paths]))


def names_of(views: Sequence[View]) -> str:
    """Return the names of views for a message, of many those of the first ones."""
    named = ", ".join(f"setup {setup} at {timepoint}" for setup, timepoint in views[:_MOST_NAMED])
    more = len(views) - _MOST_NAMED
    return f"{named} and {more} more" if more > 0 else named


class _Difference(NamedTuple):
    """The setups or time points that the XML lists, those found, and those expected."""

    name: str
    listed: set[int]
    found: set[int]
    expected: set[int]

    def both(self) -> str:
        """Say what the XML lists, and what the container holds."""
        listed, held = (ranges(numbers) or "none" for numbers in (self.listed, self.found))
        return f"{self.name}s: the XML lists {listed}, the container holds {held}"

    def problem(self) -> str:
        """Say what differs; empty if nothing does, or if the XML lists none."""
        omitted, empty = self.found - self.listed, self.expected - self.found
        parts = [f"omitted: {ranges(omitted)}"] if omitted else []
        parts += [f"without data: {ranges(empty)}"] if empty else []
        return "; ".join(parts) if self.listed else ""


def moves(description: Description | None, setup: int, timepoints: Sequence[int]) -> bool:
    """Whether the registration of a setup differs between time points."""
    if description is None:
        return False
    return len({description.registrations.get((setup, t)) for t in timepoints}) > 1
