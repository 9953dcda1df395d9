"""``n5zarr.download``: copy a part of a container to local files, byte for byte.

N5 spec, "File-system specification", items 2, 5 and 6: documents and blocks are files, and blocks
may be missing. So a part of a container is a container: a dataset keeps its dimensions, and with
them the positions of its elements.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import batched, product
from typing import ClassVar, Self, override

from n5zarr.arrays.boxes import places_in
from n5zarr.container.axes import read_placed
from n5zarr.container.block_listing import grid_position_rows
from n5zarr.container.options import require
from n5zarr.container.walk import PathPatterns
from n5zarr.conventions.model import Geometry
from n5zarr.errors import N5UnsupportedError, N5Warning, option_error
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.grid import block_path
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import N5Tuple, to_n5
from n5zarr.format.path import groups_above, join, normalize_path
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.files import is_unfinished, stamp
from n5zarr.storage.place import Backend, Location, place_of
from n5zarr.storage.requests import Remove, RemoveTree, read_each, request_each
from n5zarr.storage.secrets import shown
from n5zarr.storage.store_locations import overlap, places_behind
from n5zarr.storage.url import is_url
from n5zarr.store.locating import open_container
from n5zarr.store.missing_nodes import datasets_below, selected_nodes
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.convert.box_in_levels import Ranges, boxes_of
from n5zarr.tools.convert.copies import Folder
from n5zarr.tools.convert.target import Output, put_missing
from n5zarr.tools.jobs.incomplete import INCOMPLETE_JSON
from n5zarr.tools.jobs.run import Progress, run_tasks
from n5zarr.zarr_view.dataset_view import DatasetView

_DOWNLOAD_JSON = "n5zarr-download.json"  # names the source, so that parts of one stay apart
_FEW = 10_000  # blocks of a part; more are listed
_BATCH = 63  # blocks of one task, at most, beside the first


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
    location: Location,
    directory: str | os.PathLike[str],
    *,
    paths: Sequence[str] = (),
    select: str | None = None,
    box: Sequence[slice] | None = None,
    dry_run: bool = False,
    overwrite: bool = False,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
    progress: Progress | None = None,
) -> Downloaded:
    """Copy a part of a container into a local directory, with documents and blocks unchanged.

    Datasets keep their paths and dimensions. Blocks outside the box are missing, and read as the
    fill value. The documents of the parent groups are copied, too. Blocks that exist with the size
    of the source are not loaded again: an interrupted run continues where it stopped, and a second
    run adds another box; use ``overwrite=True`` if values have changed. Documents come last.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, or a location in one.
    directory : path
        The local container: a new directory, or the one of an earlier download.
    paths : sequence of str, optional
        Datasets or groups below ``location``; all by default.
    select : str, optional
        Datasets below ``location``, or groups that hold them, such as ``"em/s*"``.
    box : sequence of slice, optional
        Start and stop along each axis, in elements of the largest dataset, C order.

        Other datasets use the same region, by their scale and translation.
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
    place = place_of(location, storage_options, backend)
    source, node = open_container(place, writes=False)
    part = _Part.open(directory, source)
    is_part = bool(paths or select or node)
    with asking_once():
        datasets = _datasets(source, node, paths, select)
        boxes = boxes_of(source, datasets, box)
        part.documents = _documents(source, datasets)
        axes = _axes_of(source, datasets) if is_part and not dry_run else {}
    part.check(datasets, overwrite=overwrite)
    blocks = [(path, *_positions(source, path, v, boxes[path])) for path, v in datasets.items()]
    load = _Loading(source, part.container, is_anew=overwrite, is_dry_run=dry_run)
    if dry_run:
        counts = load.all(blocks, progress)
    else:
        if overwrite:
            part.storage.run(request_each([*map(RemoveTree, datasets), Remove(INCOMPLETE_JSON)]))
        ends: list[JSON] = [[side.start, side.stop] for side in box or ()]
        names: list[JSON] = list(datasets)
        job: dict[str, JSON] = {"download": str(source), "datasets": names, "box": ends}
        with part.writing(job, resume=True):
            counts = load.all(blocks, progress)
        if is_part:
            _warn_of_axes(part, axes, _axes_of(part.container, datasets))
    return Downloaded(
        container=str(part),
        datasets=tuple(datasets),
        n_blocks=counts["n_blocks"],
        n_bytes=counts["n_bytes"],
        n_loaded=counts["n_loaded"],
        n_bytes_loaded=counts["n_bytes_loaded"],
    )


@dataclass(frozen=True)
class _Loading:
    """Copies blocks as they are stored, and counts them.

    Parameters
    ----------
    source, target : N5Store
        The container, and the local one.
    is_anew, is_dry_run : bool
        Whether all blocks are loaded again; whether nothing is written.
    """

    source: N5Store
    target: N5Store
    is_anew: bool
    is_dry_run: bool

    def all(
        self, blocks: Sequence[tuple[str, int, Iterable[N5Tuple]]], progress: Progress | None
    ) -> Counter[str]:
        """Copy blocks, many at a time: for each dataset its path, their number and positions.

        Return the counts of :class:`Downloaded`, and the number of the blocks that may exist.
        """
        total, counts = sum(n for _, n, _ in blocks), Counter[str]()
        keys = (join(path, block_path(p)) for path, _, positions in blocks for p in positions)
        # more threads than cores help only those that wait for a server
        n_at_once = self.source.concurrency if self.source.storage.root is None else None
        tasks = batched(keys, 1 + min(_BATCH, total // (4 * self.source.concurrency)))
        for _, copied in run_tasks(self.some, tasks, scheduler="threads", n_workers=n_at_once):
            counts.update(copied)
            if progress is not None:
                n_bytes = counts["n_bytes"]
                progress("download", n_bytes, n_bytes * total // counts["n_keys"])
        return counts

    def some(self, keys: Sequence[str]) -> Counter[str]:
        """Copy some blocks, one after the other; a block that is there with its size stays."""
        counts = Counter(n_keys=len(keys))
        source, target = Folder(self.source.storage, ""), Folder(self.target.storage, "")
        for key in keys:
            here = None if self.is_anew else stamp(f"{self.target.root}/{key}")
            size = source.size(key) if self.is_dry_run or here is not None else None
            is_there = here is not None and here[2] == size
            if not is_there and not self.is_dry_run:
                (block,) = source.read([key])
                size = None if block is None else target.write([(key, block)])
            if size is not None:
                counts.update(n_blocks=1, n_bytes=size)
                if not is_there:
                    counts.update(n_loaded=1, n_bytes_loaded=size)
        return counts


# ---------------------------------------------------------------------- what to copy


def _datasets(
    source: N5Store, node: str, paths: Sequence[str], select: str | None
) -> dict[str, DatasetView]:
    """Find the selected datasets."""
    wanted, found = PathPatterns([select] if select else []), {}
    for path in paths or [""]:
        top = join(node, normalize_path(path))
        # patterns are those of paths below `node`
        for below in selected_nodes(source, top, wanted if top == node else PathPatterns()):
            name = below.path.removeprefix(node).strip("/")
            if isinstance(below.node, DatasetView) and wanted.wants(name):
                found[below.path] = below.node
    if not found:
        like = f" like {select!r}; in it: {datasets_below(source, node)}" if select else ""
        raise option_error(f"expected datasets, got none{like}", where=f"{source}: /{node}")
    return found


def _documents(source: N5Store, datasets: Mapping[str, DatasetView]) -> dict[str, bytes]:
    """Read the documents of datasets and of all groups above; the outermost first."""
    above = {group for path in datasets for group in groups_above(path)} - datasets.keys()
    keys = [join(path, ATTRIBUTES_JSON) for path in [*sorted(above), *sorted(datasets)]]
    found = source.run(read_each(keys))
    return {key: data for key, data in zip(keys, found, strict=True) if data is not None}


def _positions(
    source: N5Store, path: str, view: DatasetView, box: Ranges
) -> tuple[int, Iterable[N5Tuple]]:
    """Return the number and the grid positions of the blocks that touch a box, N5 order.

    Those of a whole dataset, or of a large part, are listed, since most may be missing; where the
    server does not list, and of a small part, all of the grid are returned.
    """
    dataset = view.dataset
    places = places_in(to_n5(box), dataset.block_size)
    n_positions = math.prod(map(len, places))
    if n_positions > _FEW or to_n5(tuple(map(len, box))) == dataset.dimensions:
        try:
            rows = source.run(grid_position_rows(path, dataset.grid, places))
        except N5UnsupportedError as err:
            if err.kind != "listing":
                raise
        else:
            return len(rows), (N5Tuple(row.tolist()) for row in rows)
    return n_positions, map(N5Tuple, product(*places))


def _axes_of(store: N5Store, datasets: Mapping[str, DatasetView]) -> dict[str, Geometry | None]:
    """Read the axes of the datasets, as a store describes them."""
    nodes = store.container.nodes
    return {path: store.run(read_placed(nodes, path, v)).geometry for path, v in datasets.items()}


# ---------------------------------------------------------------------- where to


@dataclass(eq=False)
class _Part(Output):
    """A local container with parts of another one, which may have been downloaded one by one.

    Parameters
    ----------
    container : N5Store
        The local container.
    source : str
        Name of the other one.
    documents : mapping, optional
        The documents to write, by key.
    """

    resuming: ClassVar[str] = "the same download continues it"

    container: N5Store
    source: str
    documents: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def open(cls, directory: str | os.PathLike[str], source: N5Store) -> Self:
        """Open a directory, or a new one; nothing is written.

        Raises
        ------
        N5UnrepresentableError
            The directory is not local, or not apart from the source (``kind="option"``).
        """
        path = os.fspath(directory)
        require(not is_url(path), f"directory: expected a local path, got {shown(path)}")
        target = N5Store(path)
        # files of the source would be replaced, or removed
        require(
            overlap(places_behind(source.storage), places_behind(target.storage)) is None,
            f"expected a directory apart from the source, got {target.root}",
            str(source),
        )
        return cls(target.storage, "", target, str(source))

    def check(self, datasets: Iterable[str], *, overwrite: bool) -> None:
        """Raise if something else is in the directory than parts of the same container.

        Raises
        ------
        N5UnrepresentableError
            Other files, or parts of another container, are there (``kind="option"``).
        """
        root, before = self.container.root, self._source_before()
        others = root.is_dir() and any(not is_unfinished(file.name) for file in root.iterdir())
        require(
            before is not None or not others,
            "expected a new directory, or one of an earlier download, got other files",
            str(root),
        )
        if overwrite:
            return
        require(
            before in (None, self.source),  # sizes do not tell other blocks
            f"expected a part of {self.source}, got one of {before}; overwrite=True "
            "(--overwrite) removes its datasets first",
            str(root),
        )
        for key in (join(path, ATTRIBUTES_JSON) for path in datasets):
            file = root / key
            require(
                not file.is_file() or file.read_bytes() == self.documents[key],
                "expected the document of the source, got another one: the dataset differs or "
                "has changed; overwrite=True (--overwrite) removes it first",
                str(file),
            )

    def _source_before(self) -> str | None:
        """Return the source of an earlier download, unfinished or not; None if there was none."""
        for name in (INCOMPLETE_JSON, _DOWNLOAD_JSON):
            with suppress(OSError, ValueError, KeyError, TypeError):
                return str(json.loads((self.container.root / name).read_bytes())["download"])
        return None

    @override
    def commit(self) -> None:
        """Name the source; write missing documents: those of groups may have been changed since."""
        named = json.dumps({"download": self.source}).encode()
        Folder(self.storage, "").write([(_DOWNLOAD_JSON, named)])
        put_missing(self.storage, self.documents)


def _warn_of_axes(
    part: _Part, wanted: Mapping[str, Geometry | None], found: Mapping[str, Geometry | None]
) -> None:
    """Warn of datasets whose axes are described by one that was not selected, such as ``s0``."""
    for path in (path for path, axes in found.items() if axes != wanted[path]):
        message = (
            f"{part}: /{path}: its axes differ from those of the source, as they depend "
            "on other levels, or an XML beside the container, which were not downloaded"
        )
        warnings.warn(message, N5Warning, stacklevel=3)
