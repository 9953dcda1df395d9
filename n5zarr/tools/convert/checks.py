"""Check that a conversion is possible, before anything is removed or written."""

from __future__ import annotations

import glob
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import zarr
from zarr.storage import FsspecStore

from n5zarr.codecs.compress import codec_of, decompress
from n5zarr.container.block_listing import Ask
from n5zarr.container.options import require
from n5zarr.container.walk import PathPatterns
from n5zarr.errors import (
    N5BlockError,
    N5Error,
    N5UnsupportedError,
    N5Warning,
    option_error,
)
from n5zarr.format.path import groups_above, join
from n5zarr.images.ome import OME_FORMATS, OmeVersion
from n5zarr.images.ome_documents import image_in
from n5zarr.images.source import SourceTree
from n5zarr.rooms import Door
from n5zarr.storage.interface import Storage
from n5zarr.storage.requests import read_each
from n5zarr.storage.store_locations import overlap_with, places_behind
from n5zarr.storage.url import is_url
from n5zarr.tools.convert.copies import ArrayCopy
from n5zarr.tools.convert.target import Destination, Layout
from n5zarr.tools.convert.target_n5 import N5Destination
from n5zarr.tools.jobs.nodes import count_blocks
from n5zarr.zarr_view.dataset_view import DatasetView

if TYPE_CHECKING:
    from n5zarr.tools.validate.findings import Finding  # the package may be missing

_CHECK_FILES: Door[Callable[[Ask, str], Iterator[Finding]]] = Door("step", "check of files")
_NAMED = 3  # blocks without a dataset


@dataclass(frozen=True)
class Form:
    """The conventions that a copy follows; see :func:`~n5zarr.convert` for each.

    Parameters
    ----------
    ome : bool
        Whether it is OME-Zarr.
    ome_version : {"0.5", "0.4", "0.6"}, optional
        The version; None leaves it to the format of the destination.
    labels : list of str
        Patterns of the images that are labels.
    paintera_labels : list of str
        Patterns of the arrays that become Paintera's label sources.
    coords : bool
        Whether it has coordinates as arrays.
    """

    ome: bool
    ome_version: OmeVersion | None
    labels: list[str]
    paintera_labels: list[str]
    coords: bool


def check_ome(target: Destination, form: Form) -> OmeVersion | None:
    """Return the version of OME-Zarr to write; None unless the user asks for OME-Zarr.

    Raises
    ------
    N5UnrepresentableError
        The destination has another format than the version, or an option applies only to OME-Zarr
        (``kind="option"``).
    """
    where, version = str(target), form.ome_version
    require(
        not form.labels or form.ome,
        "labels (--labels): expected only with ome=True (--ome)",
        where,
    )
    require(
        version is None or form.ome,
        "ome_version (--ome-version): expected only with ome=True (--ome)",
        where,
    )
    if not form.ome:
        return None
    is_zarr = not isinstance(target, N5Destination)
    require(is_zarr, "ome=True (--ome): expected Zarr as destination, got N5", where)
    of_target = next(v for v, form in OME_FORMATS.items() if form == target.zarr_format)
    require(
        version is None or OME_FORMATS[version] == target.zarr_format,
        f"ome_version (--ome-version): expected {of_target!r} for Zarr v{target.zarr_format}, got "
        f"{version!r}; without to (--to), the version chooses the format",
        where,
    )
    return version or of_target


def check_whole(form: Form, paths: PathPatterns, level: int | None) -> None:
    """Raise for options that choose a part of a project: the XML describes all of it.

    Raises
    ------
    N5UnrepresentableError
        Such an option is given (``kind="option"``).
    """
    given = {
        "select": paths.select,
        "exclude": paths.exclude,
        "level": level is not None,
        "labels": form.labels or form.paintera_labels,
        "coords": form.coords,
    }
    found = [name for name, value in given.items() if value]
    require(
        not found,
        f"{', '.join(found)}: expected only without the XML of a project as destination, which "
        "describes all views and levels",
    )


def check_options(
    target: Destination,
    form: Form,
    *,
    shards: object,
    overwrite: bool,
    resume: bool,
    n_workers: int | None,
) -> None:
    """Raise for options that have no effect with this destination, or contradict each other.

    Raises
    ------
    N5UnrepresentableError
        An option does not apply (``kind="option"``).
    """
    is_v3 = not isinstance(target, N5Destination) and target.zarr_format == 3
    where = str(target)
    require(
        not form.coords or (is_v3 and not form.ome),
        "coords=True (--coords): expected Zarr v3 as destination, without ome",
        where,
    )
    require(
        shards is None or is_v3,
        "shards (--shards): expected Zarr v3 as destination, which alone has shards",
        where,
    )
    require(
        not (overwrite and resume),
        "expected either overwrite (--overwrite) or resume (--resume), got both",
        where,
    )
    require(
        n_workers is None or n_workers >= 1,
        f"n_workers (--n-workers): expected a number above 0, got {n_workers}",
        where,
    )


def check_found(
    found: SourceTree,
    opaque: Mapping[str, object],
    paths: PathPatterns,
    level: int | None,
) -> None:
    """Raise unless all nodes are readable and at least one is selected.

    Parameters
    ----------
    found : SourceTree
        The selected nodes.
    opaque : mapping
        The nodes, by path, that are copied although they cannot be read.
    paths : PathPatterns
        The nodes to copy.
    level : int or None
        The level to copy.
    """
    for path, err in found.refused.items():
        if path not in opaque:
            is_foreign = getattr(err, "kind", None) == "foreign"
            alone = f"convert {join(found.name, path)} copies it; " * is_foreign
            err.add_note(f"{alone}exclude={path!r} (--exclude {path}) omits it")
            raise err
    wanted = f"arrays like {', '.join(paths.select)}" if paths.select else "arrays to copy"
    at_level = "" if level is None else f" at level {level}"
    takes_all = not (paths.select or paths.exclude) and level is None
    require(
        takes_all or found.arrays or opaque, f"{found.name}: expected {wanted}{at_level}, got none"
    )


def warn_of_nothing(found: SourceTree, opaque: Mapping[str, object]) -> None:
    """Warn of a source without arrays, of which only groups are copied."""
    if not (found.arrays or opaque):
        message = "expected arrays, got none; n5zarr validate finds blocks without a document"
        warnings.warn(f"{found.name}: {message}", N5Warning, stacklevel=4)


def check_complete(found: SourceTree) -> None:
    """Raise if an array lacks blocks, chunks or shards, or its document.

    Raises
    ------
    N5Error
        Arrays lack some, there are none, or a group holds blocks; the message names them
        (``kind="differs"``).
    N5UnrepresentableError
        The storage does not list what it holds (``kind="option"``).
    """
    lost = [] if found.arrays else ["there are no arrays"]
    lost += islice(_orphans(found), _NAMED)
    for path, source in found.arrays.items():
        n_blocks, n_stored = count_blocks(source)
        message = "expect_complete (--expect-complete): expected storage that lists blocks, got"
        is_known = n_blocks is not None or not isinstance(source.values, zarr.Array)
        require(is_known, f"{message} one that does not", source.name)
        if n_missing := (n_blocks or 0) - (n_stored or 0):
            lost.append(f"/{path} lacks {n_missing} of {n_blocks}")
    if lost:
        raise N5Error(
            f"expected all blocks (expect_complete, --expect-complete): {'; '.join(lost)}; missing "
            "blocks read as the fill value, and n5zarr validate --expect-complete names some",
            kind="differs",
            where=found.name,
        )


def _orphans(found: SourceTree) -> Iterator[str]:
    """Name a block in each group of N5 that holds some: the document of a dataset is lost."""
    if found.container is not None:
        check_group_files = _CHECK_FILES.needed()
        for path in found.groups:
            files = check_group_files(found.container.run, join(found.path, path))
            orphan = next((each.file for each in files if each.kind == "orphan-block"), None)
            if orphan is not None:
                yield f"/{orphan} is a block whose dataset has no document"


def check_arrays(found: SourceTree, layout: Layout) -> None:
    """Raise unless the sizes for each axis fit some array.

    Raises
    ------
    N5UnrepresentableError
        The sizes fit no array (``kind="option"``).
    """
    n_axes = {len(array.shape) for array in found.arrays.values()}
    there = " or ".join(map(str, sorted(n_axes)))
    for name, sizes in (("chunks", layout.chunks), ("shards", layout.shards)):
        require(
            not n_axes or sizes is None or len(sizes) in (1, *n_axes),
            f"{name}: expected one number, or one for each of {there} axes, got {sizes}",
        )


def check_packages(copies: Sequence[ArrayCopy]) -> None:
    """Check that the compressions of blocks to be decoded or encoded can be used here.

    Raises
    ------
    N5MissingDependencyError
        One needs an optional package.
    """
    coded = [copy for copy in copies if not copy.passes_files]
    for old, new in {(copy.source.compression, copy.target.compression) for copy in coded}:
        if old is not None:
            with suppress(N5BlockError):
                decompress(memoryview(b"\0"), 1, old)
        if new is not None:
            codec_of(new).compress(b"\0", new, 1)


def warn_of_fill_values(found: SourceTree, target: Destination) -> None:
    """Warn of arrays whose missing chunks other programs read as 0: N5 has no fill value."""
    if not isinstance(target, N5Destination) or found.container is not None:
        return
    numbers = {p: a.fill_value for p, a in found.arrays.items() if a.native_dtype.kind in "buif"}
    filled = [path for path, value in numbers.items() if value]
    if filled:
        what = f"{len(filled)} arrays" if len(filled) > 1 else "an array"
        example = f"/{filled[0]} with {numbers[filled[0]]}"
        message = (
            f"{target}: {what} with a fill value other than 0, such as {example}: programs "
            "other than n5zarr read missing chunks as 0, as N5 has no fill value"
        )
        warnings.warn(message, N5Warning, stacklevel=3)


def warn_of_multisets(found: SourceTree, target: Destination) -> None:
    """Warn of label multisets of which a copy in Zarr holds the most frequent labels only."""
    paths = [path for path, source in found.arrays.items() if source.holds_multisets]
    if paths and not isinstance(target, N5Destination):
        what = f"{len(paths)} arrays" if len(paths) > 1 else "an array"
        message = (
            f"{target}: {what} of label multisets, such as /{paths[0]}: Zarr gets the most "
            "frequent label of each voxel; a copy to N5 keeps all labels and counts"
        )
        warnings.warn(message, N5Warning, stacklevel=3)


def warn_of_ome(found: SourceTree, target: Destination, form: Form) -> None:
    """Warn of images of OME-Zarr whose version does not fit the format of Zarr of a plain copy."""
    if form.ome or form.coords or isinstance(target, N5Destination) or found.container is not None:
        return
    is_v2 = target.zarr_format == 2
    of_other = {path: own for path, own in found.groups.items() if ("ome" in own) == is_v2}
    images = [path for path, own in of_other.items() if image_in(own) is not None]
    if images:
        what = f"{len(images)} images" if len(images) > 1 else "an image"
        version = "0.5 or later" if is_v2 else "0.4 or earlier"
        message = (
            f"{target}: {what} of OME-Zarr {version}, such as /{images[0]}, which no program finds "
            f"in Zarr v{target.zarr_format}; ome=True (--ome) writes the version that fits"
        )
        warnings.warn(message, N5Warning, stacklevel=4)


def check_outside(source: SourceTree, storage: Storage, path: str) -> None:
    """Raise if a source and a path that is written or removed lie in each other.

    Raises
    ------
    N5UnrepresentableError
        The source contains the path, or the path the source (``kind="option"``).
    """
    name = source.name
    names = [name]
    if not is_url(name):
        names += glob.iglob(name)  # noqa: PTH207 - the pattern may be absolute
    if source.storage is not None:
        inner = name.removeprefix(str(source.storage)).strip("/")
        names += places_behind(source.storage, inner)
    found = overlap_with(names, storage, path)
    if found is not None:
        one, other = found
        raise option_error(
            f"destination: expected a location outside the source, got {other} and {one}"
        )


def check_places(source: SourceTree, target: Destination) -> None:
    """Raise if source and destination lie in each other, or the destination lies in an array.

    Raises
    ------
    N5UnrepresentableError
        One contains the other, or an array or a group of another format is above the destination
        (``kind="option"``).
    """
    check_outside(source, target.storage, target.path)
    for above in groups_above(target.path):
        got = _unfit(target, above)
        require(
            got is None, f"{target}: expected groups of its format above it, got {got} at /{above}"
        )


def _unfit(target: Destination, path: str) -> str | None:
    """Describe the node at a path, if the destination cannot lie in it."""
    if isinstance(target, N5Destination):
        return "a dataset" if isinstance(target.container.node(path), DatasetView) else None
    keys = [join(path, name) for name in ("zarr.json", ".zarray", ".zgroup")]
    v3, array, group = target.storage.run(read_each(keys))
    if array is not None or (v3 is not None and b'"array"' in v3):
        return "an array"
    if target.zarr_format == 3 and v3 is None and group is not None:
        return "a group of Zarr v2"
    return "a group of Zarr v3" if target.zarr_format == 2 and v3 is not None else None


def check_writable(target: Destination) -> None:
    """Raise unless a destination is writable and its blocks are always whole.

    Raises
    ------
    N5UnsupportedError
        The destination is read-only (``kind="read-only"``).
    N5UnrepresentableError
        Blocks are written in place (``kind="option"``).
    """
    storage = target.storage
    message = f"{storage}: expected a writable destination, got"
    if storage.read_only or (isinstance(target, N5Destination) and target.container.read_only):
        raise N5UnsupportedError(f"{message} a read-only one", kind="read-only")
    if not storage.store.supports_deletes:
        way = "an archive, which does not support removal; write to a directory, then pack it"
        raise N5UnsupportedError(f"{message} {way}", kind="read-only")
    require(
        storage.durability != "overwrite",
        f"{storage}: durability: expected 'atomic' or 'durable', so that blocks are whole if "
        "the run is interrupted, got 'overwrite'",
    )


def hidden_stores(source: SourceTree, target: Destination) -> list[str]:
    """Return the names of the places that other processes do not see."""
    hidden = [] if target.storage.is_shared else [str(target)]
    read = source.storage
    # a task carries zarr's stores in memory along
    if read is not None and not read.is_shared and isinstance(read.store, FsspecStore):
        hidden.append(source.name)
    return hidden
