"""Find the setups, time points and levels of BigDataViewer's data in a container."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, NamedTuple

from n5zarr.errors import N5Warning
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.path import join
from n5zarr.zarr_view.dataset_view import DatasetView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from n5zarr.container.memory import Node
    from n5zarr.conventions.bdv import Description
    from n5zarr.store.n5_store import N5Store

__all__ = ["Levels", "View", "described_views", "find_views", "moves"]


class View(NamedTuple):
    """One level of a setup at one time point: a dataset."""

    path: str
    dataset: DatasetView


type Levels = dict[str, dict[int, View]]
"""The datasets of a setup, by level and time point."""


def _numbered(opened: N5Store, path: str, pattern: str) -> list[tuple[int, str, Node]]:
    """List the children whose names are a word and a number, sorted by the number."""
    numbered: list[tuple[int, str, Node]] = []
    for name, child in opened.ask(opened.container.nodes.children(path)):
        match = re.fullmatch(pattern, name)
        if match and isinstance(child, GroupAttributes | DatasetView):
            numbered.append((int(match.group(1)), name, child))
    return sorted(numbered, key=lambda entry: entry[0])


def find_views(opened: N5Store, group: str) -> dict[int, Levels]:
    """List the levels of each setup."""
    views: dict[int, Levels] = {}
    for setup, setup_name, node in _numbered(opened, group, r"setup([0-9]+)"):
        if not isinstance(node, GroupAttributes):
            continue
        levels: Levels = {}
        above = join(group, setup_name)
        for number, name, _ in _numbered(opened, above, r"timepoint([0-9]+)"):
            for _, level, dataset in _numbered(opened, join(above, name), r"s([0-9]+)"):
                if isinstance(dataset, DatasetView):
                    view = View(join(above, name, level), dataset)
                    levels.setdefault(level, {})[number] = view
        if levels:
            views[setup] = levels
    return views


def described_views(
    opened: N5Store, views: dict[int, Levels], description: Description
) -> dict[int, Levels]:
    """Return the views that the XML describes and does not list as missing; warn of others."""
    timepoints = description.timepoints
    found = {(s, t) for s, levels in views.items() for v in levels.values() for t in v}
    others = {
        "setup": {s for s, _ in found if description.setups and s not in description.setups},
        "timepoint": {t for _, t in found} - set(timepoints) if timepoints is not None else set(),
    }
    for name, numbers in others.items():
        if numbers:
            listed = ", ".join(f"{name}{number}" for number in sorted(numbers))
            message = f"{opened}: omitted, as they are not in the XML: {listed}"
            warnings.warn(message, N5Warning, stacklevel=4)
    kept = {
        (s, t) for s, t in found if s not in others["setup"] and t not in others["timepoint"]
    } - description.missing
    described: dict[int, Levels] = {}
    for setup, levels in views.items():
        left = {k: {t: v for t, v in by.items() if (setup, t) in kept} for k, by in levels.items()}
        if any(left.values()):
            described[setup] = {level: by_time for level, by_time in left.items() if by_time}
    return described


def moves(description: Description | None, setup: int, timepoints: Sequence[int]) -> bool:
    """Whether the registration of a setup differs between time points."""
    if description is None:
        return False
    return len({description.registrations.get((setup, t)) for t in timepoints}) > 1
