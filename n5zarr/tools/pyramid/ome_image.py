"""The image of OME-Zarr that gets levels: read it, and change its metadata."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import zarr
from zarr.buffer import cpu
from zarr.storage import StorePath

from n5zarr._zarr import sync
from n5zarr.container.options import require
from n5zarr.conventions.levels import entries_in
from n5zarr.conventions.model import MisfitError, mapping
from n5zarr.conventions.ome_draft import from_06, is_06
from n5zarr.conventions.ome_zarr import image_in, level_paths, ome_part, paths_in, read_levels
from n5zarr.conventions.units import ratio
from n5zarr.errors import ErrorsAt, N5UnsupportedError, option_error
from n5zarr.format.order import to_c
from n5zarr.format.path import join
from n5zarr.storage.requests import Update, read_each
from n5zarr.tools.jobs.incomplete import read_incomplete
from n5zarr.tools.jobs.reading import for_reading

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from zarr.abc.store import Store
    from zarr.types import AnyArray

    from n5zarr.conventions.model import Axis
    from n5zarr.format.lenient_json import JSON
    from n5zarr.storage.requests import Steps
    from n5zarr.store.ome_place import OmeLocation

__all__ = [
    "OmeImage",
    "change_image",
    "consolidate_again",
    "find_image",
    "is_removable",
    "names_like",
    "others_in",
]

_CHUNK = re.compile(r"c|(c[/.])?\d+([/.]\d+)*")


@dataclass(frozen=True)
class OmeImage:
    """An image whose levels are to be written.

    Parameters
    ----------
    location : OmeLocation
        The hierarchy, and the path of the group of the image.
    attributes : mapping
        Attributes of the group.
    paths : tuple of str
        The paths of its levels below the group, the finest first.
    first : zarr.Array
        The finest level.
    axes : tuple of Axis
        The axes of the finest level by its own transforms, C order.
    """

    location: OmeLocation
    attributes: Mapping[str, JSON]
    paths: tuple[str, ...]
    first: AnyArray
    axes: tuple[Axis, ...]

    def __str__(self) -> str:
        return join(str(self.location.storage), self.location.path)

    @property
    def is_labels(self) -> bool:
        """Whether its elements are labels."""
        return ome_part(self.attributes, "image-label") is not None

    @property
    def voxel(self) -> list[float | None]:
        """Distance of elements along axes of space in one unit, C order; None for others."""
        unit = next((axis.unit for axis in self.axes if axis.type == "space"), None)
        return [
            axis.scale * (ratio(axis.unit, unit) or 1.0) if axis.type == "space" else None
            for axis in self.axes
        ]

    def full(self, path: str) -> str:
        """Return the path of a level in the hierarchy."""
        return join(self.location.path, path)

    def levels_of_labels(self) -> dict[str, int]:
        """Return the number of levels of each of its label images, by path below its group."""
        listed = paths_in(ome_part(_attributes(self.location, self.full("labels")), "labels"))
        found = {}
        for path in (join("labels", label) for label in listed):
            image = image_in(_attributes(self.location, self.full(path)))
            if image is not None:
                found[path] = len(entries_in(image))
        return found

    def n_bytes_stored(self, path: str) -> int:
        """Return the size of the stored chunks of a level."""
        store, full = self.location.storage.store, self.full(path)
        documents = [join(full, name) for name in ("zarr.json", ".zarray", ".zattrs")]
        data = self.location.storage.run(read_each(documents))
        return sync(store.getsize_prefix(full)) - sum(len(each or b"") for each in data)

    def open(self, path: str) -> AnyArray:
        """Open a level to read it."""
        return for_reading(open_level(self.location, self.full(path)))


def open_level(location: OmeLocation, path: str) -> AnyArray:
    place = StorePath(location.storage.store, path)
    return zarr.open_array(place, mode="r", zarr_format=location.zarr_format)


def find_image(location: OmeLocation) -> OmeImage:
    """Read the image at a location: its group, or its finest level.

    Raises
    ------
    N5UnrepresentableError
        There is no image, or its metadata is wrong (``kind="option"``).
    N5UnsupportedError
        Its elements are no numbers (``kind="data-type"``), or nothing can be written
        (``kind="read-only"``).
    """
    storage = location.storage
    with ErrorsAt(join(str(storage), location.path)):
        if storage.read_only or not storage.store.supports_deletes:
            message = "expected a store that can write and delete"
            raise N5UnsupportedError(message, kind="read-only")
        try:
            return _read(location)
        except MisfitError as err:
            raise option_error(str(err)) from err


def _read(location: OmeLocation) -> OmeImage:
    attributes, path = _group_of(location)
    image = image_in(attributes)
    if image is None:
        raise option_error("expected an image of OME-Zarr, or its first level, got none")
    location, paths = location._replace(path=path), level_paths(image)
    require(paths, "multiscales: datasets: expected a level, got none")
    try:
        first = open_level(location, join(path, paths[0]))
    except FileNotFoundError as err:
        message = f"expected the array {paths[0]!r}, which multiscales lists, got none"
        raise option_error(message) from err
    except (ValueError, TypeError, KeyError) as err:
        message = f"{paths[0]}: expected an array of Zarr, got {err}"
        raise option_error(message) from err
    image = from_06(image) if is_06(image) else image
    own = {key: value for key, value in image.items() if key != "coordinateTransformations"}
    levels = read_levels(own, {paths[0]: first.shape})
    require(levels, "multiscales: axes: expected those of the first level, got none")
    if first.dtype.kind not in "biuf" or not all(first.shape):
        message = f"expected numbers with elements, got {first.dtype} of shape {first.shape}"
        raise N5UnsupportedError(message, kind="data-type")
    return OmeImage(location, attributes, tuple(paths), first, to_c(levels[0].axes))


def _group_of(location: OmeLocation) -> tuple[Mapping[str, JSON], str]:
    """Return attributes and path of the group of an image; its first level may be given."""
    names = location.path.split("/") if location.path else []
    for n in range(len(names), -1, -1):
        path, inner = "/".join(names[:n]), "/".join(names[n:])
        attributes = _attributes(location, path)
        image = image_in(attributes)
        if image is not None and inner in ("", *level_paths(image)[:1]):
            return attributes, path
    return {}, location.path


def _attributes(location: OmeLocation, path: str) -> Mapping[str, JSON]:
    (data,) = location.storage.run(read_each([join(path, _document(location))]))
    try:
        document = mapping(json.loads(data or b"{}"))
    except ValueError:
        return {}
    return mapping(document.get("attributes")) if location.zarr_format == 3 else document


def _document(location: OmeLocation) -> str:
    return "zarr.json" if location.zarr_format == 3 else ".zattrs"


def others_in(attributes: Mapping[str, JSON]) -> list[Mapping[str, JSON]]:
    """Return the images of a group after the first one."""
    images = ome_part(attributes, "multiscales")
    return [mapping(each) for each in images[1:]] if isinstance(images, list) else []


def is_removable(image: OmeImage, name: str) -> bool:
    """Whether there is a level, nothing, or what is left of a level that was being removed."""
    if read_incomplete(image.location.storage.store, image.full(name)) is not None:
        return True
    try:
        image.open(name)
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return sync(_holds_only_chunks(image.location.storage.store, image.full(name)))
    return True


async def _holds_only_chunks(store: Store, path: str) -> bool:
    """Whether no key below a path is that of a document or of a foreign file."""
    async for key in store.list_prefix(f"{path}/"):
        if not _CHUNK.fullmatch(key.removeprefix(f"{path}/")):
            return False
    return True


def names_like(first: str, n: int) -> list[str]:
    """Return the paths of new levels, named like the first one.

    Examples
    --------
    >>> [names_like(name, 2)[-1] for name in ("0", "s0", "scale0/image", "10", "full")]
    ['2', 's2', 'scale2/image', 's2', 's2']
    """
    match = re.fullmatch(r"(.*?)0(\D*)", first)
    if match is None or match[1][-1:].isdigit():
        above = f"{first.rpartition('/')[0]}/".lstrip("/")
        return [f"{above}s{k}" for k in range(1, n + 1)]
    return [f"{match[1]}{k}{match[2]}" for k in range(1, n + 1)]


type Change = Callable[[Mapping[str, JSON]], Mapping[str, JSON]]


def change_image(image: OmeImage, change: Change) -> None:
    """Change the first image of ``multiscales`` in the document of the group."""
    location = image.location

    def changed(old: bytes | None) -> bytes:
        document = json.loads(old or b"{}")
        holder = document["attributes"] if location.zarr_format == 3 else document
        holder = holder["ome"] if "multiscales" in mapping(holder.get("ome")) else holder
        first, *others = holder["multiscales"]
        holder["multiscales"] = [change(first), *others]
        return json.dumps(document, indent=2).encode()

    key = join(location.path, _document(location))
    location.storage.run(_update(key, changed))


def _update(key: str, change: Callable[[bytes | None], bytes]) -> Steps[None]:
    yield [Update(key, change)]


def consolidate_again(location: OmeLocation) -> None:
    """Write consolidated metadata again where the group, or one above it, has some."""
    names = location.path.split("/") if location.path else []
    store = location.storage.store.with_read_only(read_only=False)
    for path in ("/".join(names[:n]) for n in range(len(names), -1, -1)):
        name = "zarr.json" if location.zarr_format == 3 else ".zmetadata"
        data = sync(store.get(join(path, name), cpu.buffer_prototype))
        is_old = location.zarr_format == 2 and data is not None
        if data is not None and location.zarr_format == 3:
            is_old = mapping(json.loads(data.to_bytes())).get("consolidated_metadata") is not None
        if is_old:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that v3 does not specify it
                zarr.consolidate_metadata(store, path=path, zarr_format=location.zarr_format)
