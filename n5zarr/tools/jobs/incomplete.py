"""Mark a destination as incomplete while it is written, so that an interrupted run can continue.

A run writes `n5zarr-incomplete.json` into the destination first, then blocks, then the documents
that make arrays of them, and removes the file at last. So nobody opens an array that lacks blocks,
and the next run finds what the interrupted one has written: each block is written at once, by a
rename or one request, so one that is there is whole. What the interrupted run was writing at
the end, under a name that nobody reads, is removed when the next run has written all blocks.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from zarr.buffer import cpu

from n5zarr._zarr import sync
from n5zarr.arrays.stored_chunks import each_key
from n5zarr.container.foreign import INCOMPLETE_JSON
from n5zarr.container.options import require
from n5zarr.errors import N5Error, option_error
from n5zarr.format.path import join
from n5zarr.storage.files import is_unfinished
from n5zarr.storage.requests import Remove, RemoveTree, read_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from zarr.abc.store import Store

    from n5zarr.format.lenient_json import JSON
    from n5zarr.storage.requests import Steps

__all__ = [
    "INCOMPLETE_JSON",
    "MAX_MEMORY",
    "PARTS",
    "RUN",
    "SOURCE",
    "begin",
    "confirm",
    "finish",
    "keys_below",
    "read_incomplete",
    "write_incomplete",
]

RUN = "run"
"""The member that names the run which holds the destination; it does not describe the job."""

PARTS = "parts"
"""The member that says into how many parts the job is divided."""


SOURCE = "source"
"""The member that describes the arrays of the source; their blocks depend on it."""

MAX_MEMORY = "max_memory"
"""The member of parts with the bytes on which their division depends."""


def read_incomplete(store: Store, path: str) -> dict[str, JSON] | None:
    """Return the job of an interrupted run, from its file; None if there is no file.

    Parameters
    ----------
    store : Store
        Where the destination is, with its keys as they are stored.
    path : str
        The destination in it.
    """
    data = sync(store.get(join(path, INCOMPLETE_JSON), cpu.buffer_prototype))
    return None if data is None else _parse(data.to_bytes())


def write_incomplete(store: Store, path: str, job: Mapping[str, JSON]) -> None:
    """Write the file of a run, see :func:`read_incomplete`."""
    data = cpu.Buffer.from_bytes(json.dumps(job, indent=2).encode())
    sync(store.set(join(path, INCOMPLETE_JSON), data))


def _parse(data: bytes) -> dict[str, JSON]:
    """Parse the file of a run; that of one that was killed while it wrote the file is empty."""
    try:
        document = json.loads(data)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def begin(
    store: Store, path: str, job: Mapping[str, JSON], *, resume: bool, run: str | None = None
) -> set[str]:
    """Mark a destination as incomplete, or return the keys that an interrupted run has written.

    Parameters
    ----------
    store : Store
        Where the destination is, with its keys as they are stored.
    path : str
        The destination in it.
    job : mapping
        The task and its options: only the same job resumes an interrupted run.
    resume : bool
        Whether to continue an interrupted run.
    run : str, optional
        A name of this run, which :func:`confirm` asks for.

    Returns
    -------
    set of str
        The keys below the destination, relative to it, that an interrupted run has written.

    Raises
    ------
    N5UnrepresentableError
        There is an interrupted run and it is not resumed, or it did something else
        (``kind="option"``).
    N5Error
        The source is another one than when the run began (``kind="changed"``).
    """
    before = read_incomplete(store, path)
    if before is not None:
        before.pop(RUN, None)
    where = join(str(store).removeprefix("file://"), path)
    require(
        not before or PARTS not in before or PARTS in job,
        f"{where}: expected no run in parts, got one of {(before or {}).get(PARTS)}; part=... "
        "(--part) does one of them, finish=True (--finish) ends the run, overwrite=True "
        "(--overwrite) starts again",
    )
    require(
        before is None or resume,
        f"{where}: holds the incomplete result of an interrupted run, or of one that is still at "
        "work; if none is, resume=True (--resume) continues it, overwrite=True (--overwrite) "
        "starts again",
    )
    job = json.loads(json.dumps(job))
    if before:
        _check_same(where, before, job)
    if before is None or run is not None:
        named = job if run is None else {**job, RUN: run}
        write_incomplete(store, path, named)
    return keys_below(store, path) - {INCOMPLETE_JSON}


def _check_same(where: str, before: Mapping[str, JSON], job: Mapping[str, JSON]) -> None:
    """Check that a job is that of an interrupted run; see :func:`begin`."""
    if before.get(SOURCE) != job.get(SOURCE):
        then, now = (
            {**s} if isinstance(s := each.get(SOURCE), dict) else {} for each in (before, job)
        )
        name = min(name for name in {*then, *now} if then.get(name) != now.get(name))
        raise N5Error(
            f"source {name}: expected the array that it was when the run began, {then.get(name)}, "
            f"got {now.get(name)}; {_way_to_start_again(job)}",
            kind="changed",
            where=where,
        )
    differing = sorted(k for k in {*before, *job} if before.get(k) != job.get(k))
    if differing:
        raise option_error(
            f"{where}: expected the options of the run that was interrupted, got others for "
            f"{', '.join(differing)}: {[before.get(k) for k in differing]} then, "
            f"{[job.get(k) for k in differing]} now; {_way_out(before, job, differing)}"
        )


def _way_out(before: Mapping[str, JSON], job: Mapping[str, JSON], differing: list[str]) -> str:
    """Say what a run with other options than an interrupted one can do."""
    if PARTS not in job:
        return _way_to_start_again(job)
    known = before.get(MAX_MEMORY)
    if differing == [MAX_MEMORY] and isinstance(known, int):
        return f"all parts need the same: max_memory={known} (--max-memory {known / 2**20:g})"
    return f"give the options of the other parts, or {_way_to_start_again(job)}"


def _way_to_start_again(job: Mapping[str, JSON]) -> str:
    if PARTS in job:
        return "remove the destination to start again"
    return "overwrite=True (--overwrite) starts again"


def confirm(name: str, path: str, run: str, keys: Iterable[str] = ()) -> Steps[None]:
    """Check that no other run has begun in the same destination: it may have removed blocks.

    Then remove the files that a killed run was writing, and nodes that it was removing.

    Parameters
    ----------
    name : str
        Of the storage, for messages.
    path : str
        The destination.
    run : str
        The name of this run.
    keys : iterable of str, optional
        Those that :func:`begin` has returned: what others write now has other names.

    Raises
    ------
    N5UnrepresentableError
        Another run has begun (``kind="option"``).
    """
    data = yield from read_key(join(path, INCOMPLETE_JSON))
    if data is None or _parse(data).get(RUN) != run:
        message = "expected one run at a time, but another one has begun to write there"
        raise option_error(message, where=join(name, path))
    for key in keys:
        names = key.split("/")
        n_names = next((n for n, name in enumerate(names, 1) if is_unfinished(name)), None)
        if n_names is not None:
            left = join(path, *names[:n_names])
            yield [Remove(left), RemoveTree(left)]


def finish(store: Store, path: str) -> None:
    """Remove the mark: all documents are written."""
    sync(store.delete(join(path, INCOMPLETE_JSON)))


def keys_below(store: Store, path: str) -> set[str]:
    """List all keys below a path, relative to it."""
    return {key for keys in each_key(store, path) for key in keys}
