"""Take the coarser levels of a user's tree, to write them as they are.

BigDataViewer places a level by its factors alone (``MipmapTransforms.getMipmapTransformDefault``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import xarray as xr

from n5zarr.bigdataviewer.registrations import View
from n5zarr.bigdataviewer.user_views import ViewData, views_of_level
from n5zarr.container.options import require
from n5zarr.format.order import to_n5

_DIGITS = 4  # of factors, as BigStitcher rounds them
_NEAR = 1e-3  # elements of full resolution


class GivenLevel(NamedTuple):
    """A coarser level of a view.

    Parameters
    ----------
    factors : tuple of float
        Downsampling factors, x first.
    data : ViewData
        Its elements.
    """

    factors: tuple[float, ...]
    data: ViewData


def levels_in(data: object, views: Mapping[View, ViewData]) -> dict[View, list[GivenLevel]]:
    """Return the coarser levels of each view in a tree, from ``s1`` on.

    Parameters
    ----------
    data : DataTree
        As :func:`n5zarr.open_bdv` returns it.
    views : mapping of (int, int) to ViewData
        Its views at full resolution.

    Raises
    ------
    N5UnrepresentableError
        It is no tree, or a level is missing, or placed otherwise than by factors
        (``kind="option"``).
    """
    require(
        isinstance(data, xr.DataTree),
        f"levels: expected 'given' with a DataTree, got {type(data).__name__}",
    )
    tree: Any = data
    names = {str(node.name) for node in tree.subtree if node.has_data}
    numbers = sorted(int(name[1:]) for name in names if re.fullmatch("s[1-9][0-9]{0,3}", name))
    found: dict[View, list[GivenLevel]] = {view: [] for view in views}
    for number in numbers:
        for each in views_of_level(tree, f"s{number}"):
            view = each.setup, each.timepoint
            where = f"data: setup {view[0]}, time point {view[1]}"
            n_there = len(found.get(view, ()))
            require(
                view in views and n_there == number - 1,
                f"{where}: expected each level from s0 to s{number}, got none s{n_there + 1}"
                if view in views
                else f"{where}: expected s0, got s{number} only",
            )
            found[view].append(_level(f"{where}: s{number}", each, views[view]))
    return found


def _level(where: str, level: ViewData, finest: ViewData) -> GivenLevel:
    """Return a level with its factors: the ratio of scales, or of shapes without positions."""
    pairs = zip(level.axes, finest.axes, level.values.shape, finest.values.shape, strict=True)
    factors = []
    for axis, first, n, n_first in pairs:
        by = float(round(n_first / n))
        if axis is not None and first is not None:
            by = round(axis.scale / first.scale, _DIGITS)
            place = (axis.translation - first.translation) / first.scale
            require(
                math.isclose(place, (by - 1) / 2, abs_tol=_NEAR * by),
                f"{where}: expected that the level begins {(by - 1) / 2:g} elements of s0 after s0 "
                f"along {axis.name}, as BigDataViewer places levels, got {place:g}; levels='auto' "
                "builds others",
            )
        factors.append(by)
    types = [getattr(each.values, "dtype", None) for each in (level, finest)]
    require(
        types[0] == types[1] and min(factors) > 0,
        f"{where}: expected a level of s0, {types[1]}, got {types[0]} and the factors {factors}",
    )
    return GivenLevel(to_n5(factors), level)
