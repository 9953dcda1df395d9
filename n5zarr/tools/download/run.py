"""``n5zarr.download``: copy a part of a container to local files, byte for byte.

N5 spec, "File-system specification", items 2, 5 and 6: documents and blocks are files, and blocks
may be missing. So a part of a container is a container: a dataset keeps its dimensions, and with
them the positions of its elements.
"""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import batched
from typing import TYPE_CHECKING

from zarr.storage import LocalStore

from n5zarr._zarr_private import sync
from n5zarr.arrays.remote_blocks import each
from n5zarr.container.axes import read_placed
from n5zarr.container.path_patterns import PathPatterns
from n5zarr.container.walk import Selection, Walk
from n5zarr.errors import N5UnrepresentableError, N5Warning
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.grid import block_path
from n5zarr.format.path import join, normalize_path
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.files import is_unfinished
from n5zarr.storage.place import place_of
from n5zarr.storage.requests import put_each, read_each, read_key
from n5zarr.storage.store_locations import overlap, places_behind
from n5zarr.storage.url import is_url
from n5zarr.store.location import open_container
from n5zarr.store.missing_nodes import datasets_below, not_found, warn_of_links
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.download.boxes import block_positions, boxes_of
from n5zarr.tools.jobs import incomplete
from n5zarr.zarr_view.dataset_view import DatasetView

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from n5zarr.conventions.model import Geometry
    from n5zarr.format.lenient_json import JSON
    from n5zarr.storage.place import Backend, Location
    from n5zarr.tools.jobs.run import Progress

__all__ = ["Downloaded", "download"]

_DOWNLOAD_JSON = "n5zarr-download.json"  # names the source, so that parts of one stay apart
_BATCH = 512  # blocks between two reports of progress; they are asked for many at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Downloaded:
    """The result of :func:`download`: what it has copied, or would copy.

    Parameters
    ----------
    container : str
        The local container.
    datasets : tuple of str
        Paths of the datasets, below its root.
    n_blocks : int
        Number of their blocks in the box that exist in the source.
    n_bytes : int
        Stored size of these blocks.
    n_loaded, n_bytes_loaded : int
        Number and size of the blocks that were loaded; the others exist from an earlier run.
    """

    container: str
    datasets: tuple[str, ...]
    n_blocks: int
    n_bytes: int
    n_loaded: int
    n_bytes_loaded: int


def download(  # noqa: PLR0913 - what is copied, and what all long runs take
    store: Location,
    directory: str | os.PathLike[str],
    *,
    paths: Sequence[str] = (),
    select: str | None = None,
    box: Sequence[slice] | None = None,
    dry_run: bool = False,
    overwrite: bool = False,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend = "fsspec",
    progress: Progress | None = None,
) -> Downloaded:
    """Copy a part of a container into a local directory, with documents and blocks unchanged.

    Datasets keep their paths and dimensions. Blocks outside the box are missing, and read as the
    fill value. The documents of the parent groups are copied, too. Blocks that exist with the size
    of the source are not loaded again: an interrupted run continues where it stopped, and a second
    run adds another box; use ``overwrite=True`` if values have changed. Documents come last.

    Parameters
    ----------
    store : path, URL or zarr store
        A container, or a location in one.
    directory : path
        The local container: a new directory, or the one of an earlier download.
    paths : sequence of str, optional
        Datasets or groups below ``store``; all by default.
    select : str, optional
        Pattern of the paths of datasets below ``store``, such as ``"em/s*"``.
    box : sequence of slice, optional
        Start and stop along each axis, in elements of the largest dataset, C order. Other datasets
        use the same region, by their scale and translation.
    dry_run : bool, optional
        Count the blocks to load, and write nothing.
    overwrite : bool, optional
        Remove the datasets from the directory first.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.
    progress : callable, optional
        Called with ``"download"``, the bytes done, and an estimate of the total.

    Returns
    -------
    Downloaded
        Counts.

    Raises
    ------
    FileNotFoundError
        The container or a path does not exist.
    N5UnrepresentableError
        The box does not fit, no dataset is selected, the directory holds other files or a part of
        another source, or it lies in the source, or the source in it (``kind="option"``).
    """
    place = place_of(store, storage_options, backend)
    source, node = open_container(place, read_only=True)
    target = _target(directory, source)
    is_part = bool(paths or select or node)
    with asking_once():
        datasets = dict(_datasets(source, node, paths, select))
        boxes = boxes_of(source, datasets, box)
        documents = _documents(source, datasets)
        axes = _axes_of(source, datasets) if is_part and not dry_run else {}
    _check_target(target, str(source), documents, datasets, overwrite=overwrite)
    found = {path: block_positions(source, path, v, boxes[path]) for path, v in datasets.items()}
    n_keys = sum(n for n, _ in found.values())
    keys = (join(path, block_path(p)) for path, (_, positions) in found.items() for p in positions)
    run = _Run(source, None if overwrite else target.root, None if dry_run else target)
    there = set() if dry_run else _begin(target, source, datasets, box, overwrite=overwrite)
    for batch in batched(keys, _BATCH):
        sync(run.copy(batch))
        if progress is not None and run.n_done:
            progress("download", run.n_bytes, run.n_bytes * n_keys // run.n_done)
    if not dry_run:
        target.ask(incomplete.remove_unfinished("", there))
        _write_documents(target, documents)
        incomplete.finish(LocalStore(target.root), "")
        if is_part:
            _check_axes(target, axes, _axes_of(target, datasets))
    return Downloaded(
        container=str(target),
        datasets=tuple(datasets),
        n_blocks=run.n_blocks,
        n_bytes=run.n_bytes,
        n_loaded=run.n_loaded,
        n_bytes_loaded=run.n_bytes_loaded,
    )


class _Run:
    """Copies blocks, and counts them.

    Parameters
    ----------
    source : N5Store
        The container.
    there : Path or None
        Where blocks of earlier runs may be.
    target : N5Store or None
        The local container; None to write nothing.
    """

    def __init__(self, source: N5Store, there: Path | None, target: N5Store | None) -> None:
        self._source, self._there, self._target = source, there, target
        self.n_done = self.n_blocks = self.n_bytes = self.n_loaded = self.n_bytes_loaded = 0

    async def copy(self, keys: Sequence[str]) -> None:
        """Copy some blocks, many at a time."""
        await each(lambda k: self._copy(keys[k]), len(keys), self._source.concurrency)

    async def _copy(self, key: str) -> None:
        here = None if self._there is None else _size(self._there / key)
        known = await self._size_there(key) if here is not None or self._target is None else None
        if known is not None and known == here:
            self._count(known, is_loaded=False)
        elif self._target is None:
            self._count(known, is_loaded=True)
        else:
            block = await self._source.run(read_key(key))
            if block is not None:
                await self._target.run(put_each([(key, block)]))
            self._count(None if block is None else len(block), is_loaded=True)

    async def _size_there(self, key: str) -> int | None:
        try:
            return await self._source.store.getsize(key)
        except FileNotFoundError:
            return None

    def _count(self, size: int | None, *, is_loaded: bool) -> None:
        self.n_done += 1
        if size is not None:
            self.n_blocks += 1
            self.n_bytes += size
            self.n_loaded += is_loaded
            self.n_bytes_loaded += size * is_loaded


def _size(file: Path) -> int | None:
    try:
        return file.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return None


# ---------------------------------------------------------------------- what to copy


def _datasets(
    source: N5Store, node: str, paths: Sequence[str], select: str | None
) -> Iterator[tuple[str, DatasetView]]:
    """Yield the selected datasets."""
    n_found = 0
    for path in paths or [""]:
        top = join(node, normalize_path(path))
        found = source.node(top)
        if found is None:
            raise not_found(source, top)
        # patterns are those of paths below `node`
        patterns = PathPatterns([select]) if select is not None and top == node else None
        selection = Selection(paths=patterns)
        walk = Walk(source.container.nodes, source.ask, selection, warn_of_links(source))
        for below, _ in walk.run(top, found):
            name = below.path.removeprefix(node).strip("/")
            is_selected = select is None or fnmatchcase(name, select)
            if is_selected and isinstance(below.node, DatasetView):
                n_found += 1
                yield below.path, below.node
    if not n_found:
        like = f" like {select!r}; in it: {datasets_below(source, node)}" if select else ""
        message = f"expected datasets, got none{like}"
        raise N5UnrepresentableError(message, kind="option", where=f"{source}: /{node}")


def _documents(source: N5Store, datasets: Mapping[str, DatasetView]) -> dict[str, bytes]:
    """Read the documents of datasets and of all groups above; the outermost first."""
    nodes = {""}
    for path in datasets:
        names = path.split("/")
        nodes |= {"/".join(names[: n + 1]) for n in range(len(names))}
    keys = [join(path, ATTRIBUTES_JSON) for path in sorted(nodes, key=lambda p: (p in datasets, p))]
    found = source.ask(read_each(keys))
    return {key: data for key, data in zip(keys, found, strict=True) if data is not None}


# ---------------------------------------------------------------------- where to


def _target(directory: str | os.PathLike[str], source: N5Store) -> N5Store:
    path = os.fspath(directory)
    if is_url(path):
        message = f"directory: expected a local path, got {path!r}"
        raise N5UnrepresentableError(message, kind="option")
    target = N5Store(path)
    # files of the source would be replaced, or removed
    if overlap(places_behind(source.storage), places_behind(target.storage)) is not None:
        message = f"expected a directory apart from the source, got {target.root}"
        raise N5UnrepresentableError(message, kind="option", where=str(source))
    return target


def _check_target(
    target: N5Store,
    source: str,
    documents: Mapping[str, bytes],
    datasets: Mapping[str, DatasetView],
    *,
    overwrite: bool,
) -> None:
    """Raise if something else is in the directory than a part of the same container."""
    root = target.root
    before = _read_source(root)
    others = root.is_dir() and any(not is_unfinished(file.name) for file in root.iterdir())
    if before is None and others:
        message = "expected a new directory, or one of an earlier download, got other files"
        raise N5UnrepresentableError(message, kind="option", where=str(root))
    if before not in (None, source) and not overwrite:  # sizes do not tell other blocks
        message = (
            f"expected a part of {source}, got one of {before}; overwrite=True (--overwrite) "
            "removes its datasets first"
        )
        raise N5UnrepresentableError(message, kind="option", where=str(root))
    for path in () if overwrite else datasets:
        key = join(path, ATTRIBUTES_JSON)
        here = root / key
        if here.is_file() and here.read_bytes() != documents[key]:
            message = (
                "expected the document of the source, got another one: the dataset differs or has "
                "changed; overwrite=True (--overwrite) removes it first"
            )
            raise N5UnrepresentableError(message, kind="option", where=str(here))


def _read_source(root: Path) -> str | None:
    """Return the source of an earlier download; None if there was none."""
    for name in (_DOWNLOAD_JSON, incomplete.INCOMPLETE_JSON):
        try:
            document = json.loads((root / name).read_bytes())
            return str(document["download"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def _begin(
    target: N5Store,
    source: N5Store,
    datasets: Mapping[str, DatasetView],
    box: Sequence[slice] | None,
    *,
    overwrite: bool,
) -> set[str]:
    """Mark the directory as incomplete; with ``overwrite``, remove the datasets from it.

    Return the keys of the files in it.
    """
    local = LocalStore(target.root)  # makes the directory
    if overwrite:
        for path in datasets:
            sync(target.delete_dir(path))
        incomplete.finish(local, "")
    ends: list[JSON] = [[part.start, part.stop] for part in box or ()]
    names: list[JSON] = list(datasets)
    job: dict[str, JSON] = {"download": str(source), "datasets": names, "box": ends}
    there = incomplete.begin(local, "", job, resume=True)
    (target.root / _DOWNLOAD_JSON).write_text(json.dumps({"download": str(source)}))
    return there


def _write_documents(target: N5Store, documents: Mapping[str, bytes]) -> None:
    """Write the documents that are not there; those of groups may have been changed since."""
    for key, data in documents.items():
        if not (target.root / key).is_file():
            target.ask(put_each([(key, data)]))


def _axes_of(store: N5Store, datasets: Mapping[str, DatasetView]) -> dict[str, Geometry | None]:
    """Read the axes of the datasets, as a store describes them."""
    nodes = store.container.nodes
    return {path: store.ask(read_placed(nodes, path, v)).geometry for path, v in datasets.items()}


def _check_axes(
    target: N5Store, wanted: Mapping[str, Geometry | None], found: Mapping[str, Geometry | None]
) -> None:
    """Warn of datasets whose axes are described by one that was not selected, such as ``s0``."""
    for path, axes in found.items():
        if axes != wanted[path]:
            message = (
                f"{target}: /{path}: its axes differ from those of the source, as they depend "
                "on other levels, or an XML beside the container, which were not downloaded"
            )
            warnings.warn(message, N5Warning, stacklevel=3)
