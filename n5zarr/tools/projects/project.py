"""Describe views as a project: setups with names, time points, registrations, arrays to write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from n5zarr.container.options import require
from n5zarr.conventions.bdv import NEAR, Setup, write_setup, write_timepoint
from n5zarr.conventions.bdv_registrations import ViewTransform
from n5zarr.conventions.bdv_write import project_xml, view_image
from n5zarr.conventions.model import Axis
from n5zarr.format.order import to_n5
from n5zarr.images.find import ome_tree
from n5zarr.images.in_bdv import image_of_view, images_of_setups
from n5zarr.images.source import ArraySource, SourceTree
from n5zarr.store.register import transforms_of
from n5zarr.tools.projects.views import ENTITIES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from xml.etree.ElementTree import Element

    import numpy.typing as npt

    from n5zarr.conventions.bdv_registrations import View
    from n5zarr.format.lenient_json import JSON
    from n5zarr.images.ome import OmeVersion
    from n5zarr.store.register import Registrations
    from n5zarr.tools.projects.views import ViewData

__all__ = ["ProjectData", "dataset_of"]

_NO_UNIT = "pixel"


def dataset_of(view: View, ome_version: OmeVersion | None) -> str:
    """Return the path of a view in the container: ``s0`` of N5, or a group of OME-Zarr."""
    setup, timepoint = view
    n5 = f"setup{setup}/timepoint{timepoint}/s0"
    return n5 if ome_version is None else view_image(setup, timepoint)


@dataclass(frozen=True, eq=False)
class ProjectData:
    """Views with all that the XML says of them.

    Parameters
    ----------
    views : mapping of (int, int) to ViewData
        The views by setup and time point.
    setups : mapping of int to Setup
        The setups by number.
    voxel_size : sequence of float or None
        Size along z, y and x of all views, instead of the distance of their positions.
    """

    views: Mapping[View, ViewData]
    setups: Mapping[int, Setup]
    voxel_size: Sequence[float] | None

    @classmethod
    def of(
        cls,
        views: Sequence[ViewData],
        names: Mapping[int, Mapping[str, str]],
        voxel_size: Sequence[float] | None,
        unit: str | None,
    ) -> Self:
        """Describe views.

        Parameters
        ----------
        views : sequence of ViewData
            At least one.
        names : mapping of int to mapping
            Names of setups, by number, that precede those of the views.
        voxel_size : sequence of float or None
            Size along z, y and x, instead of the distance of positions.
        unit : str or None
            Unit of voxel sizes, instead of that of positions.

        Raises
        ------
        N5UnrepresentableError
            Views of a setup differ, or names or sizes are not right (``kind="option"``).
        """
        firsts: dict[int, ViewData] = {}
        for view in views:
            first = firsts.setdefault(view.setup, view)
            require(
                _like(view) == _like(first) and _is_near(view, first, voxel_size),
                f"data: setup {view.setup}: expected the shape, type, unit and voxel size of time "
                f"point {first.timepoint}, {_like(first)}, {_scales(first)}, got {_like(view)}, "
                f"{_scales(view)} at {view.timepoint}",
            )
        named = _names(firsts, names)
        setups = {
            number: Setup(
                name=named[number].get("name", str(number)),
                voxel_size=_voxel_size(first, voxel_size),
                unit=str(unit or _unit(first)),
                attributes=numbers,
                names={kind: named[number][kind] for kind in ENTITIES},
                size=to_n5(first.values.shape),
                tile_location=first.tile_location,
            )
            for (number, first), numbers in zip(firsts.items(), _entities(named), strict=True)
        }
        return cls({(v.setup, v.timepoint): v for v in views}, setups, voxel_size)

    @property
    def timepoints(self) -> list[int]:
        """Numbers of the time points."""
        return sorted({timepoint for _, timepoint in self.views})

    @property
    def missing(self) -> set[View]:
        """Views without data."""
        return {(s, t) for s in self.setups for t in self.timepoints} - self.views.keys()

    def transforms(self, given: Registrations) -> dict[View, tuple[ViewTransform, ...]]:
        """Return the transforms of each view.

        Parameters
        ----------
        given : mapping
            Those of the user, by view or setup, instead of those that follow from positions.

        Raises
        ------
        N5UnrepresentableError
            There is no such view, or no such matrix (``kind="option"``).
        """
        found = {view: self._placed(view) for view in self.views}
        of_setup: dict[object, list[View]] = {}
        for view in found:
            of_setup.setdefault(view[0], []).append(view)
        for key, value in given.items():
            chosen = [key] if key in found else of_setup.get(key)
            require(chosen, f"registrations: expected a setup or a view of the data, got {key!r}")
            found |= dict.fromkeys(chosen or (), transforms_of(value, "registration"))
        return found

    @cached_property
    def _finest(self) -> float:
        """The smallest extent of a voxel in any setup: BigStitcher's unit."""
        return min(size for each in self.setups.values() for size in each.voxel_size or ())

    def _placed(self, view: View) -> tuple[ViewTransform, ...]:
        """Return the transforms that follow from voxel size and positions."""
        data, finest = self.views[view], self._finest
        # its own: a registration may stretch it
        scale = np.diag(np.divide(_voxel_size(data, self.voxel_size), finest))
        first = np.array([0.0 if axis is None else axis.translation for axis in to_n5(data.axes)])
        transforms = [_transform("calibration", scale, np.zeros(3))]
        if first.any():
            transforms.insert(0, _transform("translation", np.eye(3), first / finest))
        if data.registration is not None:
            (given,) = transforms_of(data.registration, "registration")
            matrix = given.matrix
            transforms.insert(0, _transform(given.name, matrix[:, :3], matrix[:, 3] / finest))
        return tuple(transforms)

    def xml(self, loader: Element, registrations: Registrations) -> bytes:
        """Write the XML.

        Parameters
        ----------
        loader : Element
            The images.
        registrations : mapping
            As for :meth:`transforms`.
        """
        return project_xml(
            loader=loader,
            setups=self.setups,
            timepoints=self.timepoints,
            missing=self.missing,
            registrations=self.transforms(registrations),
        )

    def tree(self, name: str, ome_version: OmeVersion | None) -> SourceTree:
        """Return the arrays and groups to write.

        Parameters
        ----------
        name : str
            For messages.
        ome_version : {"0.4", "0.5"} or None
            The version of OME-Zarr; None for N5.
        """
        arrays = {view: _source(data) for view, data in self.views.items()}
        if ome_version is not None:
            images = [
                image_of_view(view, self.setups[view[0]].name, {0: (array, self._axes(view[0]))})
                for view, array in arrays.items()
            ]
            return ome_tree(images_of_setups(SourceTree(name, {}, {}), images), ome_version)
        groups: dict[str, dict[str, JSON]] = {"": {}}
        for (number, timepoint), array in arrays.items():
            setup = self.setups[number]
            groups[f"setup{number}"] = write_setup([(1, 1, 1)], array.native_dtype.name)
            groups[f"setup{number}/timepoint{timepoint}"] = write_timepoint(setup.voxel_size)
        return SourceTree(name, {dataset_of(v, None): a for v, a in arrays.items()}, groups)

    def _axes(self, number: int) -> tuple[Axis, ...]:
        setup = self.setups[number]
        sizes = zip("zyx", reversed(setup.voxel_size or ()), strict=True)
        return tuple(Axis(name=n, type="space", unit=setup.unit, scale=s) for n, s in sizes)


def _transform(
    name: str, linear: npt.NDArray[np.float64], offset: npt.NDArray[np.float64]
) -> ViewTransform:
    return ViewTransform(name, tuple(np.column_stack([linear, offset]).ravel().tolist()))


def _source(view: ViewData) -> ArraySource:
    dtype = np.dtype(getattr(view.values, "dtype", None))
    require(
        dtype.kind in "iuf" and dtype.itemsize in (1, 2, 4, 8) and dtype != np.float16,
        f"data: setup {view.setup}: expected integers or floats that N5 has, got {dtype}",
    )
    return ArraySource(
        name=f"setup {view.setup}, time point {view.timepoint}",
        values=view.values,
        dtype=dtype,
        chunks=view.chunks,
        fill_value=0,
    )


def _like(view: ViewData) -> tuple[object, ...]:
    """Return what all time points of a setup must have in common."""
    units = tuple(None if axis is None else axis.unit for axis in view.axes)
    return tuple(view.values.shape), str(getattr(view.values, "dtype", "")), units


def _scales(view: ViewData) -> tuple[float, ...]:
    """Return the distance of positions along z, y and x."""
    return tuple(1.0 if axis is None else axis.scale for axis in view.axes)


def _is_near(view: ViewData, first: ViewData, given: Sequence[float] | None) -> bool:
    """Whether a registration, which may stretch a time point, explains its voxel size."""
    sizes, others = _voxel_size(view, given), _voxel_size(first, given)
    return bool((np.abs(np.log(np.divide(sizes, others))) < NEAR).all())


def _voxel_size(view: ViewData, given: Sequence[float] | None) -> tuple[float, ...]:
    """Return the voxel size along x, y and z."""
    scales = _scales(view)
    require(
        min(scales) > 0,
        f"data: setup {view.setup}: expected ascending positions along z, y and x, got distances "
        f"{list(scales)}; data.sortby(['z', 'y', 'x']) sorts them",
    )
    sizes = scales if given is None else _numbers(given)
    require(
        len(sizes) == 3 and all(0 < size < np.inf for size in sizes),
        f"voxel_size: expected a number above 0 for each of z, y, x, got {given!r}",
    )
    return to_n5(sizes)


def _numbers(given: object) -> tuple[float, ...]:
    """Return numbers of a user; none of anything else."""
    try:
        values = np.asarray(given, float)
    except (TypeError, ValueError):
        return ()
    return tuple(values.tolist()) if values.ndim == 1 else ()


def _unit(view: ViewData) -> str:
    """Return the unit of the positions of a view."""
    units = {axis.unit for axis in view.axes if axis is not None}
    require(
        len(units) <= 1,
        f"data: setup {view.setup}: expected one unit of all axes, got {units}; unit=... "
        "chooses it",
    )
    return (units.pop() if units else None) or _NO_UNIT


def _names(
    firsts: Mapping[int, ViewData], given: Mapping[int, Mapping[str, str]]
) -> dict[int, dict[str, str]]:
    """Return the names of each setup, and of its channel, tile and so on.

    BigStitcher cannot tell setups apart whose parts are all the same: setups that say nothing
    of their parts are tiles.
    """
    _check_mapping(given)
    unknown = [key for names in given.values() for key in names if key not in ("name", *ENTITIES)]
    require(
        not unknown and given.keys() <= firsts.keys(),
        f"setups: expected names {['name', *ENTITIES]} of setups {[*firsts]}, got "
        f"{ {n: [*names] for n, names in given.items()} }",
    )
    found = {}
    for number, view in firsts.items():
        own = {"name" if key == "setup_name" else key: name for key, name in view.names.items()}
        found[number] = own | {key: str(name) for key, name in given.get(number, {}).items()}
    is_said = any(names.keys() & {*ENTITIES} for names in found.values())
    default = dict.fromkeys(ENTITIES, "0")
    return {
        number: default | ({} if is_said else {"tile": str(number)}) | names
        for number, names in found.items()
    }


def _check_mapping(given: object) -> None:
    is_right = isinstance(given, Mapping) and all(isinstance(v, Mapping) for v in given.values())
    require(
        is_right,
        "setups: expected a mapping of setups to their names, {0: {'name': 'left'}}, got "
        f"{given!r}",
    )


def _entities(named: Mapping[int, Mapping[str, str]]) -> list[dict[str, int]]:
    """Return numbers for the channel, tile and so on of each setup: those of names, or in order."""
    numbers: dict[str, dict[str, int]] = {}
    for kind in ENTITIES:
        names = list(dict.fromkeys(each[kind] for each in named.values()))
        own = [int(name) if name.isdecimal() else -1 for name in names]
        are_numbers = -1 not in own and len({*own}) == len(own) and max(own) < 2**31
        numbers[kind] = dict(zip(names, own if are_numbers else range(len(names)), strict=True))
    return [{kind: numbers[kind][each[kind]] for kind in ENTITIES} for each in named.values()]
