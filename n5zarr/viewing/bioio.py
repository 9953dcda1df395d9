"""Read the images of a container as scenes of BioIO, which finds this module by an entry point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from n5zarr.arrays.placing import read_on_host
from n5zarr.conventions.units import ratio
from n5zarr.errors import N5MissingDependencyError
from n5zarr.format.path import join
from n5zarr.images.find import open_images
from n5zarr.images.image import Image, ImageLevel
from n5zarr.images.ome import image_attributes, ome_xml
from n5zarr.storage.url import is_url
from n5zarr.viewing.arguments import is_n5

try:
    import xarray as xr
    from bioio_base import constants, io, reader, types
    from bioio_base.reader_metadata import ReaderMetadata as _ReaderMetadata
    from ome_types import OME, from_xml
except ModuleNotFoundError as err:
    raise N5MissingDependencyError(str(err.name), "the reader for BioIO", "bioio") from err

if TYPE_CHECKING:
    import dask.array as da
    from bioio_base.standard_metadata import StandardMetadata
    from fsspec import AbstractFileSystem


_LETTERS = {"time": "T", "channel": "C", "": "C"}  # of axes that are not spatial
_UNITS = {"space": "micrometer", "time": "second"}  # the defaults of OME's schema


class ReaderMetadata(_ReaderMetadata):
    """Tell BioIO which locations the reader may open, before it opens them."""

    @staticmethod
    def get_supported_extensions() -> list[str]:
        """Return the extensions of containers and of BigDataViewer's projects."""
        return [".n5", ".xml"]

    @staticmethod
    def supports_directory_images() -> bool:
        """Whether folders may be images; a group or dataset of a container may have any name."""
        return True

    @staticmethod
    def get_reader() -> type[Reader]:  # type: ignore[override] # BioIO means the class, too
        """Return the class of the reader."""
        return Reader


class Reader(reader.Reader):
    """The images of a container for BioIO: each is a scene, named by its path.

    Lengths are in micrometers and times in seconds if their units are known, otherwise as in the
    container; see :attr:`dimension_properties`.

    Parameters
    ----------
    image : path or URL
        A container, a group or dataset in one, or the XML of BigDataViewer or BigStitcher.
    fs_kwargs : dict, optional
        Options of fsspec, for a URL.

    Raises
    ------
    FileNotFoundError
        Nothing exists at this location.
    N5UnrepresentableError
        There is no image: no dataset of numbers with two or three axes of space
        (``kind="option"``).

    Examples
    --------
    >>> import n5zarr
    >>> opened = Reader(n5zarr.sample_path())
    >>> opened.scenes, opened.dims, opened.physical_pixel_sizes.X
    (('em', 'labels'), <Dimensions [Z: 40, Y: 96, X: 128]>, 0.008)
    """

    NAME: ClassVar[str] = "n5zarr"

    def __init__(self, image: types.PathLike, fs_kwargs: Mapping[str, Any] | None = None) -> None:
        super().__init__(image)
        location, options = str(image), dict(fs_kwargs or {})
        self._fs, self._path = io.pathlike_to_fs(location, fs_kwargs=options)
        found = open_images(location, storage_options=options or None)
        self._images = {
            join(found.source.path, image.path) or image.name: image
            for image in found.with_elements()
        }

    @classmethod
    def is_supported_image(
        cls,
        image: types.ImageLike,
        fs_kwargs: Mapping[str, Any] | None = None,
        **kwargs: object,
    ) -> bool:
        """Whether a location is N5: look at local paths and XML files, and at the names of URLs."""
        if not isinstance(image, str | Path):
            return False
        options = dict(fs_kwargs or {})
        if is_n5(image, options or None):
            return True
        if not is_url(str(image)):
            io.pathlike_to_fs(image, enforce_exists=True)  # raises if there is nothing
        return False

    @staticmethod
    def _is_supported_image(fs: AbstractFileSystem, path: str, **kwargs: object) -> bool:
        return is_n5(fs.unstrip_protocol(path))

    @property
    def scenes(self) -> tuple[str, ...]:
        """The paths of the images, those of labels last."""
        return tuple(self._images)

    @property
    def image(self) -> Image:
        """The image of the current scene."""
        return self._images[self.current_scene]

    @property
    def resolution_levels(self) -> tuple[int, ...]:
        """The numbers of the levels of the current scene; 0 is the finest."""
        return tuple(range(len(self.image.levels)))

    def set_scene(self, scene_id: str | int) -> None:
        """Choose a scene, and its finest level if it does not have the current one."""
        super().set_scene(scene_id)
        if self._current_resolution_level not in self.resolution_levels:
            self._current_resolution_level = 0

    @property
    def _level(self) -> ImageLevel:
        return self.image.levels[self._current_resolution_level]

    @property
    def _letters(self) -> str:
        """BioIO's letters of the dimensions, in the order of the array."""
        spatial = self.image.spatial()
        names = [self.image.axes[i].name.upper() for i in spatial]
        if not set(names) <= {"Z", "Y", "X"}:
            names = [*"ZYX"[-len(names) :]]
        of_space = dict(zip(spatial, names, strict=True))
        axes = enumerate(self.image.axes)
        return "".join(of_space.get(i) or _LETTERS[axis.type] for i, axis in axes)

    def _placed(self) -> dict[str, tuple[float, float, str | None]]:
        """Return scale, translation and unit of each dimension of space or time, by letter."""
        level = self._level
        found = {}
        for i, (letter, axis) in enumerate(zip(self._letters, self.image.axes, strict=True)):
            wanted = _UNITS.get(axis.type)
            if wanted is not None:
                by = None if axis.unit is None else ratio(axis.unit, wanted)
                unit, by = (axis.unit, 1.0) if by is None else (wanted, by)
                found[letter] = (level.scale[i] * by, level.translation[i] * by, unit)
        return found

    def _read_delayed(self) -> xr.DataArray:
        return self._described(self._level.lazy())

    def _read_immediate(self) -> xr.DataArray:
        level = self._level
        return self._described(read_on_host(level.values, tuple(slice(0, n) for n in level.shape)))

    def _read_indexed(
        self, given_dims: str, dim_specs: list[int | slice | list[int]]
    ) -> np.ndarray[Any, Any]:
        """Read only a part of an image; by default BioIO reads all of it."""
        if self._xarray_data is not None:
            return _selected(self.data, dim_specs)
        box: list[slice] = []
        within: list[int | slice | list[int]] = []
        for spec in dim_specs:
            if isinstance(spec, int):
                box.append(slice(spec, spec + 1 or None))
                within.append(0)
            elif isinstance(spec, slice):
                box.append(spec)
                within.append(slice(None))
            else:
                box.append(slice(None))
                within.append(spec)
        return _selected(self.dask_data[tuple(box)].compute(), within)

    def _described(self, data: da.Array | np.ndarray[Any, Any]) -> xr.DataArray:
        """Return values with dimensions, coordinates and metadata."""
        letters = self._letters
        coords: dict[str, Any] = {
            letter: translation + scale * np.arange(data.shape[letters.index(letter)])
            for letter, (scale, translation, _) in self._placed().items()
        }
        if "C" in letters:
            n_channels = data.shape[letters.index("C")]
            ids = [f"Channel:{self.current_scene_index}:{i}" for i in range(n_channels)]
            known = [c.name for c in self.image.channels if len(self.image.channels) == n_channels]
            coords["C"] = [name or own for name, own in zip_longest(known, ids)]
        attrs = {constants.METADATA_UNPROCESSED: image_attributes(self.image)}
        return xr.DataArray(data, dims=tuple(letters), coords=coords, attrs=attrs)

    @property
    def physical_pixel_sizes(self) -> types.PhysicalPixelSizes:
        """Distance of elements along Z, Y and X at the current level, in micrometers if known."""
        placed = self._placed()
        return types.PhysicalPixelSizes(*(placed[d][0] if d in placed else None for d in "ZYX"))

    @property
    def time_interval(self) -> types.TimeInterval:
        """Time between two images; None if it is not known."""
        scale, _, unit = self._placed().get("T", (0.0, 0.0, None))
        return timedelta(seconds=scale) if unit == "second" else None

    @property
    def standard_metadata(self) -> StandardMetadata:
        """Metadata of the current scene in BioIO's form."""
        found, interval = super().standard_metadata, self.time_interval
        found.timelapse_interval = interval
        if interval is not None and found.image_size_t is not None:
            found.total_time_duration = interval * (found.image_size_t - 1)
        return found

    @property
    def dimension_properties(self) -> types.DimensionProperties:
        """Type and unit of each dimension of the current scene."""
        of_image = dict(zip(self._letters, self.image.axes, strict=True))
        placed = self._placed()
        found = []
        for letter in "TCZYX":
            axis = of_image.get(letter)
            unit = placed[letter][2] if letter in placed else None
            # pint would evaluate more than a name
            name = unit if unit and unit.isidentifier() and unit in types.ureg else None
            known = types.ureg.Unit(name) if name else None
            found.append(types.DimensionProperty((axis.type or None) if axis else None, known))
        return types.DimensionProperties(*found)

    @property
    def ome_metadata(self) -> OME:
        """Description of all scenes in OME's schema.

        Raises
        ------
        NotImplementedError
            OME has no data type for one of the scenes, such as one of uint64.
        """
        xml = ome_xml(self._images)
        if xml is None:
            raise NotImplementedError("OME has no such data type as one of these images")
        return from_xml(xml)


def _selected(
    data: np.ndarray[Any, Any], dim_specs: Sequence[int | slice | list[int]]
) -> np.ndarray[Any, Any]:
    """Select along each axis; numpy would join several lists, and move their axis to the front."""
    for axis in reversed(range(data.ndim)):
        data = data[(*[slice(None)] * axis, dim_specs[axis])]
    return data
