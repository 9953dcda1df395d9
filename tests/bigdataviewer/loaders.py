"""Find the images of a project by the rules of Java, without n5zarr.

bigdataviewer-core 19911bd6 (2026) ``bdv.img.n5``: ``BdvN5Format`` (paths), ``DefaultN5Properties``
(type and factors are attributes of ``setupN``, and of no other document), ``N5ImageLoader`` (the
factors count the levels), and ``bdv.util.MipmapTransforms``.
multiview-reconstruction 58d0e65 (8.0, 2025): ``AllenOMEZarrProperties`` (type, factors and number
of levels are those of the first time point that is not missing; a level is named by its place in
the list) and ``AllenOMEZarrLoader.OMEZARREntry``. Its branch for Zarr v3 finds ``ome/multiscales``
where there is no ``multiscales``, and takes the names of levels from the list.
n5-universe 2.3 ``CoordinateTransformationAdapter``: scales are x first.

``XmlIoAllenOMEZarrLoader`` chooses the format of Zarr: see :mod:`tests.bigdataviewer.spimdata`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorstore as ts

from tests.bigdataviewer.spimdata import SpimData

TYPES = {f"{kind}int{bits}" for kind in ("", "u") for bits in (8, 16, 32, 64)}
TYPES |= {"float32", "float64"}


class NullPointerError(Exception):
    """Java uses something that is not there: the view does not open."""


class Level(NamedTuple):
    """An image as BigDataViewer shows it: vectors are x, y, z.

    The shift is the position of the first element, in elements of full resolution.
    """

    dimensions: tuple[int, ...]
    shift: tuple[float, ...]
    values: npt.NDArray[Any]


class N5Loader:
    """``N5ImageLoader`` with ``DefaultN5Properties``."""

    def __init__(self, container: Path) -> None:
        self.container = container

    def attributes(self, path: str) -> Any:
        """Return the attributes of a group or dataset; none if it has no document."""
        file = self.container / path / "attributes.json"
        return json.loads(file.read_text()) if file.is_file() else {}

    def data_type(self, setup: int) -> str:
        """Return the type of all images of a setup: ``DataTypeProperties.of`` of it."""
        return str(self._not_null(self.attributes(f"setup{setup}").get("dataType"), TYPES))

    def resolutions(self, setup: int) -> list[tuple[float, ...]]:
        """Return the downsampling factors, x first, of all levels of a setup."""
        listed = self._not_null(self.attributes(f"setup{setup}").get("downsamplingFactors"))
        factors = [tuple(map(float, each)) for each in listed]  # double[][]
        assert {len(each) for each in factors} == {3}
        return factors

    def level(self, setup: int, timepoint: int, level: int) -> Level:
        """Return an image, as ``getImage``, ``getImageSize`` and ``getMipmapTransforms`` do."""
        array = self.array(self.path(setup, timepoint, level))
        values = self.volume(setup, timepoint, array)
        factors = self.resolutions(setup)[level]
        # MipmapTransforms.getMipmapTransformDefault
        shift = tuple(0.5 * (factor - 1) for factor in factors)
        assert values.ndim == 3
        return Level(array.shape[:3], shift, values.T)

    def path(self, setup: int, timepoint: int, level: int) -> str:
        return f"setup{setup}/timepoint{timepoint}/s{level}"

    def array(self, path: str) -> npt.NDArray[Any]:
        """Read a dataset, x first; null is no dataset."""
        stated = self.attributes(path)
        if not {"dimensions", "blockSize", "dataType", "compression"} <= stated.keys():
            raise NullPointerError(path)
        return read_with_tensorstore("n5", self.container / path)

    def volume(self, setup: int, timepoint: int, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        del setup, timepoint
        return array

    def _not_null(self, value: Any, allowed: set[str] | None = None) -> Any:
        if value is None:
            raise NullPointerError(str(self.container))
        assert allowed is None or value in allowed
        return value


class OmeLoader(N5Loader):
    """``AllenOMEZarrLoader`` with ``AllenOMEZarrProperties``."""

    def __init__(self, container: Path, project: SpimData, zarr_format: int) -> None:
        super().__init__(container)
        self.project = project
        self.zarr_format = zarr_format

    def attributes(self, path: str) -> Any:
        file = self.container / path / {2: ".zattrs", 3: "zarr.json"}[self.zarr_format]
        found = json.loads(file.read_text()) if file.is_file() else {}
        return found if self.zarr_format == 2 else found.get("attributes", {})

    def image(self, setup: int, timepoint: int) -> str:
        found = self.project.images.get((setup, timepoint))
        return str(self._not_null(found)[0])

    def first(self, setup: int) -> int:
        """Return the first time point that is not missing: ``getFirstAvailableTimepointId``."""
        return next(t for t in self.project.timepoints if (setup, t) not in self.project.missing)

    def datasets(self, setup: int, timepoint: int) -> Any:
        attributes = self.attributes(self.image(setup, timepoint))
        images = attributes.get("multiscales") or attributes.get("ome", {}).get("multiscales")
        (image,) = self._not_null(images)
        return image["datasets"]

    def data_type(self, setup: int) -> str:
        dtype = self.array(self.path(setup, self.first(setup), 0)).dtype.name
        return str(self._not_null(dtype, TYPES))

    def resolutions(self, setup: int) -> list[tuple[float, ...]]:
        scales = []
        for dataset in self.datasets(setup, self.first(setup)):
            (own,) = [t for t in dataset["coordinateTransformations"] if t["type"] == "scale"]
            scales.append(np.array(own["scale"][::-1][:3], float))
        return [tuple(np.round(scale / scales[0], 4).tolist()) for scale in scales]

    def path(self, setup: int, timepoint: int, level: int) -> str:
        listed = self.datasets(setup, self.first(setup))[level]["path"]
        assert listed.removeprefix("/") == str(level)  # 8.0 and the branch agree
        return f"{self.image(setup, timepoint)}/{level}"

    def array(self, path: str) -> npt.NDArray[Any]:
        file = self.container / path / {2: ".zarray", 3: "zarr.json"}[self.zarr_format]
        if not file.is_file():
            raise NullPointerError(path)
        driver = {2: "zarr", 3: "zarr3"}[self.zarr_format]
        return read_with_tensorstore(driver, self.container / path).T

    def volume(self, setup: int, timepoint: int, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the volume of a view: ``extract3DVolume``."""
        _, indices = self.project.images[setup, timepoint]
        if array.ndim > 3 and not indices:
            assert array.ndim == 5  # of 4, 8.0 slices an axis that does not exist
            assert array.shape[3:] == (1, 1)
            indices = (0, 0)
        for axis in reversed(range(3, 3 + len(indices) if array.ndim > 3 else 3)):
            array = array.take(indices[axis - 3], axis)
        return array


def read_with_tensorstore(driver: str, path: Path) -> npt.NDArray[Any]:
    """Read an array, with the axes of its document."""
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": str(path)}}
    found: Any = ts.open(spec, open=True, read=True).result().read().result()
    return np.asarray(found)
