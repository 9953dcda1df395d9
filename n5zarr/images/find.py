"""Find the images at a location, in any convention, and present them as OME-Zarr.

Images, their levels, axes and channels are those that a conversion to OME-Zarr writes: so viewers,
pictures and plugins of other programs all show the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import zarr
from zarr.types import AnyArray

from n5zarr.conventions.bdv import view_of
from n5zarr.conventions.model import items_of
from n5zarr.errors import N5Warning, option_error
from n5zarr.format.lenient_json import JSON
from n5zarr.images.from_n5 import n5_tree
from n5zarr.images.image import Image, Images
from n5zarr.images.in_n5 import find_in_n5
from n5zarr.images.ome import (
    DEFAULT_VERSION,
    METADATA_XML,
    OME_FORMATS,
    OmeVersion,
    image_attributes,
    ome_attributes,
    ome_xml,
)
from n5zarr.images.ome_documents import (
    without_ome,
)
from n5zarr.images.source import ArraySource, SourceTree
from n5zarr.rooms import Door
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.place import Backend, Location, place_of
from n5zarr.store.n5_store import N5Store

_FIND_VIEWS: Door[Callable[[SourceTree, N5Store], Images | None]] = Door("images", "views")


def find_images(
    location: Location | AnyArray | zarr.Group,
    *,
    labels: Sequence[str] = (),
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> list[Image]:
    """Find the images at a location in a container; nothing but documents is read.

    Parameters
    ----------
    location : path, URL, zarr store, array or group
        A container, a group or dataset in one, also one that is open, OME-Zarr, or the XML of
        BigDataViewer or BigStitcher.
    labels : sequence of str, optional
        Path patterns of images that are labels, in addition to those that are marked as labels.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Returns
    -------
    list of Image
        The images by path, the labels last.

    Raises
    ------
    FileNotFoundError
        Nothing exists at this location.
    N5UnrepresentableError
        There is no image: no dataset of numbers with two or three axes of space and with elements
        (``kind="option"``).

    Examples
    --------
    >>> import n5zarr
    >>> em = find_images(n5zarr.sample_path())[0]
    >>> em.path, [axis.name for axis in em.axes], [level.shape for level in em.levels]
    ('em', ['z', 'y', 'x'], [(40, 96, 128), (20, 48, 64), (10, 24, 32)])
    """
    found = open_images(location, labels=labels, storage_options=storage_options, backend=backend)
    return found.with_elements()


def open_images(
    location: Location | AnyArray | zarr.Group,
    *,
    labels: Sequence[str] = (),
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> Images:
    """Find the images at a location, and the arrays and groups beside them.

    Parameters and errors are those of :func:`find_images`; images without elements are found, too.
    """
    place = place_of(location, storage_options, backend)
    with asking_once():
        return images_in(n5_tree(place), labels=labels)


def images_in(tree: SourceTree, *, labels: Sequence[str] = (), warns: bool = True) -> Images:
    """Find the images among the arrays and groups of an N5 source.

    Parameters
    ----------
    tree : SourceTree
        The source; nodes that it omits are omitted.
    labels : sequence of str, optional
        Patterns of paths of images whose elements are labels.
    warns : bool, optional
        Whether to warn of what OME-Zarr cannot express.

    Raises
    ------
    N5UnrepresentableError
        The source is neither N5 nor shown as N5, or has no image that OME-Zarr can express
        (``kind="option"``).
    """
    if tree.container is None:
        raise option_error(
            f"{tree.name}: ome=True (--ome): expected N5, or a group of OME-Zarr that is or holds "
            "images, as the source of OME-Zarr; without it, arrays are copied as they are"
        )
    has_views = any(view_of(tuple(path.split("/"))) for path in tree.arrays)
    find_views = _FIND_VIEWS.found() if has_views else None
    found = None if find_views is None else find_views(tree, tree.container)
    found = found or find_in_n5(tree, tree.container, labels)
    if warns:
        warn_of(found)
    return found


def warn_of(found: Images) -> None:
    """Warn of what OME-Zarr cannot express of images, or of what is missing of them."""
    mirrored = [
        f"/{image.path}: in reverse order along {', '.join(image.mirrored)}, at the same "
        "positions, as OME-Zarr has no scales below 0"
        for image in found.images
        if image.mirrored
    ]
    warn_once(found.source.name, [*found.notes, *mirrored])


def warn_once(name: str, notes: Sequence[str]) -> None:
    """Warn of what is noted of nodes, ``"path: what"``; once of what is the same of several."""
    where: dict[str, list[str]] = {}
    for note in notes:
        path, _, what = note.partition(": ")
        where.setdefault(what, []).append(path)
    for what, (first, *others) in where.items():
        more = f" and {len(others)} other{'s' * (len(others) > 1)}" if others else ""
        warnings.warn(f"{name}: {first}{more}: {what}", N5Warning, stacklevel=6)


def ome_tree(found: Images, version: OmeVersion = DEFAULT_VERSION) -> SourceTree:
    """Return the arrays and groups of OME-Zarr for images and for all beside them.

    Parameters
    ----------
    found : Images
        The images.
    version : {"0.5", "0.4", "0.6"}, optional
        The version of OME-Zarr.
    """
    levels = {level.path: level.array for image in found.images for level in image.levels}
    arrays = {**levels, **found.arrays}
    if OME_FORMATS[version] == 2:
        arrays = {path: _filled(array) for path, array in arrays.items()}
    images = {image.path: image_attributes(image, version) for image in found.images}
    lists: dict[str, dict[str, JSON]] = {}
    for path, metadata in found.lists.items():
        beside = without_ome(found.groups.get(path, {}))
        kept = {key: value for key, value in beside.items() if key not in metadata}
        lists[path] = kept | ome_attributes(version, metadata)
    return replace(
        found.source,
        arrays=arrays,
        groups=dict(sorted({**found.groups, **lists, **images}.items())),
        files=_files(found),
    )


def _filled(array: ArraySource) -> ArraySource:
    """Return an array of numbers whose fill value is stated.

    A dataset of N5 as Zarr v2 states none, and zarr-python 2 reads memory as it was where chunks
    are missing.
    """
    if array.fill_value is not None or array.native_dtype.kind not in "buif":
        return array
    return replace(array, fill_value=array.native_dtype.type(0))


def _files(found: Images) -> dict[str, bytes]:
    """Describe a collection of images in OME-XML, if OME can express it."""
    series = items_of(found.lists.get("OME", {}).get("series"))
    by_path: dict[object, Image] = {image.path: image for image in found.images}
    listed = [by_path[path] for path in series]
    xml = ome_xml({image.path: image for image in listed}) if listed else None
    return {} if xml is None else {METADATA_XML: xml}
