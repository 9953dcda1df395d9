"""Find the images in files that BioIO's readers open, such as CZI, LIF and ND2, to copy them."""

from __future__ import annotations

import re
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import numpy as np

from n5zarr.errors import N5FormatError, N5MissingDependencyError
from n5zarr.format.grid import automatic_block_size
from n5zarr.images.source import ArraySource, SourceTree
from n5zarr.tools.optional import import_optional

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from n5zarr.arrays.boxes import Box
    from n5zarr.format.lenient_json import JSON

__all__ = ["bioio_tree", "is_for_bioio"]

# the package of the reader of files with a suffix
_READERS = {
    "bioio-czi": ("czi",),
    "bioio-lif": ("lif",),
    "bioio-nd2": ("nd2",),
    "bioio-dv": ("dv", "r3d"),
    "bioio-sldy": ("sldy",),
    "bioio-vsi": ("vsi",),
    "bioio-imageio": ("png", "jpg", "jpeg", "gif", "bmp"),
    "bioio-bioformats": ("ims", "oib", "oif", "lsm", "mrc", "nrrd", "ics", "ids", "mvd2", "obf"),
}
_PACKAGES = {suffix: package for package, suffixes in _READERS.items() for suffix in suffixes}

# the axes of BioIO: samples of a pixel are channels, unless there are others
_NAMES = {"T": "t", "C": "c", "Z": "z", "Y": "y", "X": "x", "M": "m"}


_LOCK = threading.Lock()


def is_for_bioio(name: str) -> bool:
    """Whether the name of a file ends as those that a reader of BioIO opens.

    Examples
    --------
    >>> is_for_bioio("a.CZI"), is_for_bioio("a.n5")
    (True, False)
    """
    return _suffix(name) in _PACKAGES


def _suffix(name: str) -> str:
    return PurePath(name).suffix.lower().removeprefix(".")


def bioio_tree(file: str) -> SourceTree:
    """Find all images in a file; several scenes become a group each, with an array ``s0``.

    Axes of one element are left out, except ``y`` and ``x``. Names of channels become those of
    the axis ``c``.

    Parameters
    ----------
    file : str
        The local file.

    Raises
    ------
    FileNotFoundError
        The file does not exist.
    N5FormatError
        The reader cannot read the file (``kind="foreign"``).
    N5MissingDependencyError
        BioIO, or its reader for such files, is not installed.
    """
    opening = uuid4().hex
    scenes = _opened(file, opening).scenes
    if len(scenes) == 1:
        return SourceTree(file, {"": _source(_Values(file, 0, opening))}, {})
    names: dict[str, int] = {}
    for number, scene in enumerate(scenes):
        name = re.sub(r"[^\w.-]+", "_", scene).strip("._") or f"image{number}"
        names[name if name not in names else f"{name}_{number}"] = number
    arrays = {f"{n}/s0": _source(_Values(file, i, opening)) for n, i in names.items()}
    return SourceTree(file, arrays, {path: {} for path in ("", *names)})


@lru_cache(maxsize=8)
def _opened(file: str, opening: str) -> Any:  # noqa: ANN401 - the extra may be missing
    """Open a file once in each process; its readers open it anew for each part that they read."""
    bioio = import_optional("bioio", f"reading .{_suffix(file)}", "bioio")
    plugins = import_optional("bioio.plugins", f"reading .{_suffix(file)}", "bioio")
    unsupported = import_optional("bioio_base.exceptions", "BioIO", "bioio")
    try:
        with suppress(TypeError):  # of readers without this option
            return bioio.BioImage(file, chunk_dims=["Y", "X"])
        return bioio.BioImage(file)
    except unsupported.UnsupportedFileFormatError as err:
        if not any(file.lower().endswith(end) for end in plugins.get_plugins(use_cache=False)):
            package = _PACKAGES.get(_suffix(file), "bioio-bioformats")
            raise N5MissingDependencyError(package, f"reading .{_suffix(file)}", "") from err
        message = f"{file}: expected a file that a reader of BioIO opens, got {err}"
        raise N5FormatError(message, kind="foreign") from err


class _Axis(NamedTuple):
    """An axis of BioIO that is copied: its letter, place, and name."""

    letter: str
    place: int
    name: str


@dataclass(frozen=True)
class _Values:
    """The elements of a scene; each process opens the file for itself.

    ``opening`` distinguishes openings of the same file, which may change between them.
    """

    file: str
    scene: int
    opening: str = field(default_factory=lambda: uuid4().hex)

    @property
    def shape(self) -> tuple[int, ...]:
        found = _scene(self)
        return tuple(found.array.shape[axis.place] for axis in found.axes)

    def __getitem__(self, box: Box) -> np.ndarray:
        found = _scene(self)
        inner: list[Any] = [0] * found.array.ndim
        for axis, part in zip(found.axes, box, strict=True):
            inner[axis.place] = part
        # the caller has threads itself
        return np.asarray(found.array[tuple(inner)].compute(scheduler="synchronous"))


class _Scene(NamedTuple):
    """A scene of a file: dask's array, the axes that are copied, and what is known of them."""

    array: Any
    axes: Sequence[_Axis]
    channels: Sequence[str]
    scale: Mapping[str, float]
    units: Mapping[str, str]


@lru_cache(maxsize=64)
def _scene(values: _Values) -> _Scene:
    with _LOCK:  # the scene is a state of the image
        image = _opened(values.file, values.opening)
        try:
            image.set_scene(values.scene)
            return _described(image)
        except Exception as err:  # of any kind: readers come from many people
            message = f"{values.file}: expected an image that BioIO's reader understands, got "
            raise N5FormatError(f"{message}{type(err).__name__}: {err}", kind="foreign") from err


def _described(image: Any) -> _Scene:  # noqa: ANN401 - BioIO's
    array, letters = image.dask_data, str(image.dims.order)
    sizes = dict(zip(letters, array.shape, strict=True))
    kept = [letter for letter in letters if sizes[letter] > 1 or letter in "YX"]
    names = _NAMES | {"S": "s" if "C" in kept else "c"}
    axes = [_Axis(each, letters.index(each), names.get(each, each.lower())) for each in kept]
    channels = [str(name) for name in image.channel_names or ()]
    return _Scene(array, axes, channels, *_placed(image))


def _placed(image: Any) -> tuple[dict[str, float], dict[str, str]]:  # noqa: ANN401 - BioIO's
    """Return the size of a pixel, and its unit, along the axes for which the file has them.

    Without a unit, lengths are micrometres and times are seconds.
    """
    try:
        sizes, properties = image.scale, image.dimension_properties
    except AttributeError:  # of readers without sizes of pixels
        return {}, {}
    given = {letter: getattr(sizes, letter, None) for letter in "TZYX"}
    given = {k: v.total_seconds() if isinstance(v, timedelta) else v for k, v in given.items()}
    scale = {k: float(v) for k, v in given.items() if v is not None and 0 < v < np.inf}
    units = {k: getattr(getattr(properties, k, None), "unit", None) for k in scale}
    default = {"T": "s", "Z": "µm", "Y": "µm", "X": "µm"}
    return scale, {k: str(unit or default[k]) for k, unit in units.items()}


def _blocks(shape: Sequence[int], along: Sequence[str]) -> tuple[int, ...]:
    """Return the extent of a block: of one time point and one channel."""
    in_space = [n for n, letter in zip(shape, along, strict=True) if letter in "ZYXS"]
    sizes = iter(automatic_block_size(tuple(in_space)))
    return tuple(next(sizes) if letter in "ZYXS" else 1 for letter in along)


def _source(values: _Values) -> ArraySource:
    scene = _scene(values)
    shape, chunks = values.shape, [max(each) for each in scene.array.chunks]
    along = [axis.letter for axis in scene.axes]
    attributes: dict[str, JSON] = {}
    n_channels = dict(zip(along, shape, strict=True)).get("C")
    if n_channels == len(scene.channels):
        attributes["coordinateArrays"] = {"c": list(scene.channels)}
    is_placed = bool(scene.scale)
    return ArraySource(
        name=values.file,
        values=values,
        dtype=scene.array.dtype.newbyteorder("="),
        chunks=_blocks(shape, along),
        read_in=tuple(chunks[axis.place] for axis in scene.axes),
        attributes=attributes,
        dimension_names=[axis.name for axis in scene.axes],
        units=[scene.units.get(each, "") for each in along] if is_placed else None,
        resolution=[scene.scale.get(each, 1.0) for each in along] if is_placed else None,
        offset=[0.0] * len(along) if is_placed else None,
    )
