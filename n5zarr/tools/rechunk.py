"""``n5zarr.rechunk``: change the block size or compression of datasets in a local container."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from n5zarr.container.options import require
from n5zarr.errors import N5UnsupportedError
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.grid import is_block_name
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import join
from n5zarr.images.from_n5 import n5_tree
from n5zarr.storage.locks import alone
from n5zarr.storage.place import Location, place_of
from n5zarr.store.locating import open_container
from n5zarr.store.missing_nodes import existing_node
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.convert.convert import convert
from n5zarr.tools.convert.writing import Conversion
from n5zarr.tools.jobs.incomplete import INCOMPLETE_JSON, PARTS, read_incomplete
from n5zarr.tools.jobs.parts import Division
from n5zarr.tools.jobs.run import Progress, Scheduler

_WRITTEN = "written.json"  # the datasets that are ready to replace the old ones


def rechunk(  # noqa: PLR0913 - the options of convert
    location: Location,
    path: str = "",
    *,
    chunks: int | Sequence[int] | None = None,
    compression: Mapping[str, JSON] | str | None = None,
    resume: bool = False,
    part: str | tuple[int, int] | None = None,
    finish: bool = False,
    scheduler: Scheduler = None,
    n_workers: int | None = None,
    progress: Progress | None = None,
) -> Conversion:
    """Rewrite the datasets below a node in place, with another block size or compression.

    The new datasets are written beside the container, into ``.NAME.rechunk``, and compared with the
    old ones. Then each replaces the old one by two renames. Programs that have opened an old
    dataset must open it again before they write.

    Parameters
    ----------
    location : path
        A local container, or a location in one.
    path : str, optional
        Dataset or group below ``location``.
    chunks : int or sequence of int, optional
        Extent of a block in elements, C order; one number for all axes.
    compression : mapping or str, optional
        As in ``attributes.json``.
    resume : bool, optional
        Whether to continue an interrupted run.
    part : str or (int, int), optional
        Write and compare only one of several parts, such as ``"3/100"``: processes on one or more
        machines do a part each, with otherwise equal options; a part that was killed is repeated.
    finish : bool, optional
        After all parts: put the new datasets in place.
    scheduler, n_workers, progress : optional
        ``"threads"``, ``"processes"``, or dask's address or client; number of workers; a callable
        that takes the name of a stage, the bytes done and the bytes to do.

    Returns
    -------
    Conversion
        How each dataset was rewritten.

    Raises
    ------
    FileNotFoundError
        The container or node does not exist.
    N5UnsupportedError
        The files are not local, or a dataset is a link or holds other nodes (``kind="option"``);
        the container can only be read (``kind="read-only"``).
    N5UnrepresentableError
        Neither ``chunks`` nor ``compression`` is given, an interrupted run has to be resumed, parts
        have not ended, or another run works in the container (``kind="option"``).

    Examples
    --------
    >>> import pathlib, shutil, tempfile, n5zarr
    >>> mine = shutil.copytree(n5zarr.sample_path(), pathlib.Path(tempfile.mkdtemp(), "mine.n5"))
    >>> n5zarr.rechunk(mine, "em/s1", chunks=32).arrays[0].chunks
    (20, 32, 32)
    """
    require(
        chunks is not None or compression is not None,
        "rechunk: expected chunks, a compression or both, got none",
    )
    store, node = open_container(place_of(location), path, writes=True)
    root = store.storage.root
    if root is None:
        raise N5UnsupportedError(
            f"{store}: expected local files, where a dataset is replaced by renaming; "
            "n5zarr.convert(...) writes a new container",
            kind="option",
        )
    options: dict[str, Any] = {"chunks": chunks, "compression": compression}
    options |= {"scheduler": scheduler, "n_workers": n_workers, "progress": progress}
    division = Division.of(part, finish=finish)
    beside = root.parent / f".{root.name}.rechunk"
    if not beside.exists():  # else a dataset may have been moved there
        existing_node(store, node)
    if division.part is not None:  # others are at work, too
        return _rechunk(root, node, beside, division, resume=False, **options)
    with alone(beside) as is_alone:
        require(
            is_alone,
            f"{beside}: another run of rechunk is writing there; one at a time works in a "
            "container: a group rechunks all datasets below it",
        )
        return _rechunk(root, node, beside, division, resume=resume or finish, **options)


def _rechunk(
    root: Path,
    node: str,
    beside: Path,
    division: Division,
    *,
    resume: bool,
    **options: Any,  # noqa: ANN401 - those of convert
) -> Conversion:
    """Write new datasets beside the container, and put them in place."""
    new = beside / "new.n5"
    written = _written(beside, node, resume=resume)
    if written is not None:  # all but the renames
        done = Conversion(str(root / node), str(new), (), 0, 0.0, verified=True)
    else:
        _check_alone(root / node)
        done = _write_new(root / node, new / node, division, resume=resume, **options)
        if division.part is not None:
            return done
        written = [join(node, array.path) for array in done.arrays]
        # from now on, the old ones are replaced
        part = beside / f"{_WRITTEN}.partial"
        part.write_text(json.dumps({"path": node, "datasets": written}))
        os.replace(part, beside / _WRITTEN)  # noqa: PTH105 - no rename of a dataset
    for array in written:
        _replace(root / array, new / array, beside / "replaced")
    shutil.rmtree(new / node, ignore_errors=True)
    if any(new.rglob(INCOMPLETE_JSON)):  # parts of another node
        (beside / _WRITTEN).unlink()
    else:
        shutil.rmtree(beside)
    return replace(done, destination=str(root / node))


def _write_new(
    old: Path,
    new: Path,
    division: Division,
    *,
    resume: bool,
    **options: Any,  # noqa: ANN401 - those of convert
) -> Conversion:
    """Write new datasets, or a part of them, and compare them with the old ones."""
    if division.part is not None:
        return convert(old, new, part=division.part, verify=True, **options)
    if division.ends:
        return replace(convert(old, new, finish=True, **options), verified=True)
    mark = read_incomplete(N5Store(new).store, "") if new.exists() else None
    require(
        mark is None or PARTS not in mark,
        f"{new}: expected no run in parts, got one; part=... (--part) does one of them, "
        f"finish=True (--finish) ends the run; to start again, remove {new.parent}",
    )
    is_begun = resume and mark is not None
    return convert(old, new, overwrite=not is_begun, resume=is_begun, verify=True, **options)


def _written(beside: Path, node: str, *, resume: bool) -> list[str] | None:
    """Return the datasets of an interrupted run that still have to be put in place; None if none.

    Raises
    ------
    N5UnrepresentableError
        Datasets have to be put in place, and the run is not resumed (``kind="option"``).
    """
    try:
        found = json.loads((beside / _WRITTEN).read_bytes())
    except FileNotFoundError:
        return None
    require(
        resume and found["path"] == node,
        f"{beside}: holds datasets of an interrupted run in /{found['path']}, which must be "
        f"put in place first; run path={found['path']!r}, resume=True (--resume)",
    )
    return list(found["datasets"])


def _check_alone(node: Path) -> None:
    """Raise if datasets are links or hold other files than blocks: replacing removes everything."""
    for dataset in (node / path for path in n5_tree(place_of(node)).arrays):
        real = dataset.resolve()
        if real != dataset:
            message = f"{dataset}: expected a directory, got a link to {real}; rechunk that"
            raise N5UnsupportedError(message, kind="option")
        for entry in dataset.iterdir():
            if entry.name != ATTRIBUTES_JSON and not is_block_name(entry.name):
                raise N5UnsupportedError(
                    f"{dataset}: expected only blocks in a dataset, got {entry.name!r}; move it",
                    kind="option",
                )


def _replace(old: Path, new: Path, aside: Path) -> None:
    """Replace a dataset by another one, or continue a replacement that was interrupted."""
    if not new.exists():  # it is in place
        return
    if old.exists():
        shutil.rmtree(aside, ignore_errors=True)
        old.rename(aside)
    new.rename(old)
    shutil.rmtree(aside)
