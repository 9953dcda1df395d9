"""Read BigDataViewer's and BigStitcher's axes: ``setupN/timepointM/sK``.

``BdvN5Format``, ``MipmapTransforms.getMipmapTransformDefault``; N5 order, three dimensions. The XML
beside them says more, see :class:`~n5zarr.conventions.model.SetupView`; without it, the attributes
of a time point have the voxel size.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from n5zarr.conventions.levels import factors_in_json, factors_to_first, problems_of_factors
from n5zarr.conventions.model import (
    Convention,
    Geometry,
    MisfitError,
    Node,
    axes_of,
    centre_shifts,
    numbers_at,
)
from n5zarr.format.lenient_json import JSON

_SETUP = re.compile(r"setup([0-9]{1,10})")
_TIMEPOINT = re.compile(r"timepoint([0-9]{1,10})")
_NOTHING = 1e-12  # largest rounding error, relative, of a matrix that does not rotate


def view_of(path: tuple[str, ...]) -> tuple[int, int] | None:
    """Parse the numbers of setup and time point from the path of a level; None for other paths.

    Examples
    --------
    >>> view_of(("bdv", "setup3", "timepoint0", "s1")), view_of(("em", "s1"))
    ((3, 0), None)
    """
    if len(path) < 3:
        return None
    setup, timepoint = _SETUP.fullmatch(path[-3]), _TIMEPOINT.fullmatch(path[-2])
    return setup and timepoint and (int(setup.group(1)), int(timepoint.group(1)))


def setup_of(name: str) -> int | None:
    """Parse the number of a setup from the name of its group; None for other names."""
    match = _SETUP.fullmatch(name)
    return match and int(match.group(1))


def read(node: Node) -> Geometry | None:
    """Read scale and translation of a level of a setup; None for any other dataset."""
    if view_of(node.path) is None or node.ndim != 3:
        return None
    scale, offset, rest = _place(node)
    by = factors_to_first(node) or (1.0, 1.0, 1.0)
    return Geometry(
        axes=axes_of(
            3,
            scale=[s * f for s, f in zip(scale, by, strict=True)],
            translation=[o + s for o, s in zip(offset, centre_shifts(scale, by), strict=True)],
            units=None if node.view is None else node.view.unit,
        ),
        rest=rest,
    )


def write_setup(factors: Sequence[Sequence[float]], data_type: str) -> dict[str, JSON]:
    """Make the attributes of ``setupN`` for BigDataViewer's ``DefaultN5Properties``.

    Parameters
    ----------
    factors : sequence of sequence of float
        Factors of each level, ``s0`` first; N5 order.
    data_type : str
        ``dataType`` of the levels.
    """
    return {
        "downsamplingFactors": [factors_in_json(by) for by in factors],
        "dataType": data_type,
    }


def write_timepoint(
    voxel_size: Sequence[float] | None, *, is_complete: bool = True
) -> dict[str, JSON]:
    """Make the attributes of ``setupN/timepointM``, as BigStitcher's ``setupBdvDatasetsN5``.

    Parameters
    ----------
    voxel_size : sequence of float or None
        Voxel size of the setup, x, y, z; left out unless it is three numbers above 0.
    is_complete : bool, optional
        Whether all levels are stored.
    """
    sizes = [*(voxel_size or ())]
    is_right = len(sizes) == 3 and all(0 < size < math.inf for size in sizes)
    resolution: dict[str, JSON] = {"resolution": [*sizes]} if is_right else {}
    return {**resolution, "saved_completely": is_complete, "multiScale": True}


type _Numbers = Sequence[float]


def _place(node: Node) -> tuple[_Numbers, _Numbers, tuple[tuple[float, ...], ...]]:
    """Return scale and translation at full resolution, and the rest of the registration."""
    view = node.view
    if view is not None and view.registration is not None:
        if not view.registration:
            raise MisfitError(
                "ViewRegistration in the XML: expected affine transforms of 12 numbers"
            )
        return _parts(view.registration)
    if view is not None and view.voxel_size is not None:
        if len(view.voxel_size) != 3:
            raise MisfitError(
                f"voxelSize in the XML: expected 3 numbers, got {list(view.voxel_size)}"
            )
        return view.voxel_size, (0.0, 0.0, 0.0), ()
    timepoint = node.ancestors[0] if node.ancestors else {}
    resolution = numbers_at(timepoint, "resolution", 3, "group of the levels: ")
    return resolution or (1.0, 1.0, 1.0), (0.0, 0.0, 0.0), ()


def _parts(registration: _Numbers) -> tuple[_Numbers, _Numbers, tuple[tuple[float, ...], ...]]:
    """Split a registration into scale and translation along each axis, and a rotation or shear.

    Scale and translation map the first element to the same point as the registration; rotation
    and shear leave this point in place.
    """
    matrix = np.reshape(registration, (3, 4))
    linear, offset = matrix[:, :3], matrix[:, 3]
    lengths = np.linalg.norm(linear, axis=0)
    mixed = linear - np.diag(np.diag(linear))
    if (np.abs(mixed) <= _NOTHING * lengths).all():
        return np.diag(linear).tolist(), offset.tolist(), ()
    if not lengths.all():
        raise MisfitError(
            "ViewRegistration in the XML: expected a matrix without a column of zeros"
        )
    turned = linear / lengths
    rest = np.column_stack([turned, offset - turned @ offset])
    return lengths.tolist(), offset.tolist(), tuple(map(tuple, rest.tolist()))


BDV = Convention(
    name="bdv",
    read=read,
    lists=("downsamplingFactors",),
    is_by_factors=True,
    problems=problems_of_factors,
)
