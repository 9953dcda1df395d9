"""Repair containers: remove leftovers of killed writers, move damaged blocks aside, and back.

N5 takes every directory of a container for a group, so that damaged blocks go beside it: from
``em.n5/raw/0/1/2`` to ``em.n5.quarantine/<time>/raw/0/1/2``. A block is removed only after its copy
and the list of all copies are written, and only if it still has the same bytes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from zarr.storage import FsspecStore

from n5zarr.container.nodes import read_document
from n5zarr.container.options import require
from n5zarr.errors import N5UnsupportedError
from n5zarr.format.attributes import DatasetAttributes, parse_attributes
from n5zarr.format.grid import is_block_name
from n5zarr.format.order import N5Tuple
from n5zarr.storage.interface import Storage
from n5zarr.storage.opening import open_storage
from n5zarr.storage.place import Backend, Location, place_of
from n5zarr.storage.requests import (
    Remove,
    RemoveTree,
    Stamp,
    Steps,
    Update,
    put_each,
    read_key,
    request_each,
)
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.jobs.nodes import open_to_repair
from n5zarr.tools.validate.blocks import check_block, whole
from n5zarr.tools.validate.findings import Finding

_LIST = "quarantine.json"
_HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class Cleanup:
    """The result of :func:`n5zarr.clean_leftovers`.

    Parameters
    ----------
    removed : tuple of str
        The removed files, below the root of the container.
    kept : mapping of str to str
        Reasons why other files were kept, by file.
    """

    removed: tuple[str, ...]
    kept: Mapping[str, str]


def clean_leftovers(
    location: Location,
    findings: Iterable[Finding],
    *,
    min_age: float = _HOUR,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> Cleanup:
    """Remove leftovers that a check has found: unfinished files, and lock files of tensorstore.

    No program reads these files. Recently written files are kept, because a writer may be about to
    rename them. Empty blocks are not leftovers: :func:`n5zarr.quarantine_blocks` moves them.

    Parameters
    ----------
    location : path, URL or zarr store
        The container, or a location in it.
    findings : iterable of Finding
        Findings of :func:`n5zarr.validate`. Other kinds are ignored.
    min_age : float, optional
        Seconds since the last change of a local file; younger files are kept. On servers no writer
        makes such files, so they are copies, and are removed.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Raises
    ------
    N5UnsupportedError
        The container can only be read (``kind="read-only"``).

    Examples
    --------
    >>> import n5zarr
    >>> result = n5zarr.validate(n5zarr.sample_path())
    >>> n5zarr.clean_leftovers(n5zarr.sample_path(), result.findings).removed
    ()
    """
    store, _ = open_to_repair(place_of(location, storage_options, backend), "")
    removed: list[str] = []
    kept: dict[str, str] = {}
    for each in findings:
        if each.repair != "clean" or each.file is None:
            continue
        (stamp,) = store.run(request_each([Stamp(each.file)]))  # of local files with their time
        age = max(0.0, time.time() - int(stamp[1]) / 1e9) if isinstance(stamp, tuple) else min_age
        if age < min_age:
            kept[each.file] = f"written {age:.0f} s ago: a program may be writing it"
        else:
            # a file, or a directory that was being removed
            store.run(request_each([Remove(each.file), RemoveTree(each.file)]))
            removed.append(each.file)
    return Cleanup(removed=tuple(removed), kept=kept)


@dataclass(frozen=True, kw_only=True)
class Quarantine:
    """The result of :func:`n5zarr.quarantine_blocks`.

    Parameters
    ----------
    quarantine : str
        The directory that holds the blocks now, for :func:`n5zarr.restore_blocks`; empty if no
        block was moved.
    moved : tuple of str
        The moved blocks, below the root of the container.
    kept : mapping of str to str
        Reasons why other blocks were kept, by block.
    """

    quarantine: str
    moved: tuple[str, ...]
    kept: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Restoration:
    """The result of :func:`n5zarr.restore_blocks`.

    Parameters
    ----------
    moved : tuple of str
        The restored blocks, below the root of the container.
    kept : mapping of str to str
        Reasons why other blocks stay, by block.
    """

    moved: tuple[str, ...]
    kept: Mapping[str, str]


def quarantine_blocks(
    location: Location,
    findings: Iterable[Finding],
    *,
    to: Location | None = None,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> Quarantine:
    """Move damaged blocks out of a container, so that programs can read and write it again.

    The blocks are then missing, and read as 0. The list ``quarantine.json`` beside the moved blocks
    has the original place of each, and its problem.

    Parameters
    ----------
    location : path, URL or zarr store
        The container, or a location in it.
    findings : iterable of Finding
        Findings of :func:`n5zarr.validate`. Kinds other than ``empty-block``, ``header`` and
        ``payload`` are ignored.
    to : path, URL or zarr store, optional
        Where to move the blocks; by default a directory beside the container, with its name and
        ``.quarantine``.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Raises
    ------
    N5UnsupportedError
        The container has no place beside it, such as one in memory: pass ``to``
        (``kind="option"``); or it can only be read (``kind="read-only"``).
    N5UnrepresentableError
        ``to`` is in the container, in which directories are groups (``kind="option"``).
    """
    store, _ = open_to_repair(place_of(location, storage_options, backend), "")
    damaged = [each for each in findings if each.repair == "quarantine" and each.block is not None]
    if not damaged:
        return Quarantine(quarantine="", moved=(), kept={})
    folder = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    storage = _outside(store, to)
    records: dict[str, dict[str, object]] = {}
    kept: dict[str, str] = {}
    for each in damaged:
        key = str(each.key)
        data = store.run(read_key(key))
        if data is None or not _is_damaged(store, each, data):
            kept[key] = "it is gone" if data is None else "it is sound: it was written again"
            continue
        storage.run(put_each([(f"{folder}/{key}", data)]))
        records[key] = {**each.to_json(), "sha256": sha256(data).hexdigest()}
    if records:
        listed = json.dumps({"container": str(store), "blocks": records}, indent=2)
        storage.run(put_each([(f"{folder}/{_LIST}", listed.encode())]))
    moved = [k for k, each in records.items() if store.run(_remove_same(k, each["sha256"]))]
    kept |= dict.fromkeys(sorted(records.keys() - moved), "it was written again meanwhile")
    place = f"{storage}/{folder}" if moved else ""
    return Quarantine(quarantine=place, moved=tuple(moved), kept=kept)


def restore_blocks(
    quarantine: Location,
    location: Location,
    *,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> Restoration:
    """Move blocks from quarantine back to their original places.

    Parameters
    ----------
    quarantine : path, URL or zarr store
        ``quarantine`` of :class:`Quarantine`.
    location : path, URL or zarr store
        The container.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Raises
    ------
    N5UnrepresentableError
        The place has no list of blocks, or a list of other files (``kind="option"``).
    N5UnsupportedError
        The container can only be read (``kind="read-only"``).
    """
    place = place_of(location, storage_options, backend, one_of_two=True)
    storage = open_storage(place_of(quarantine, storage_options, backend, one_of_two=True))
    store, _ = open_to_repair(place, "")
    moved: list[str] = []
    kept: dict[str, str] = {}
    for key in _listed(storage):
        data = storage.run(read_key(key))
        if data is None:
            kept[key] = "it is not in quarantine"
        elif not store.run(_restore(key, data)):
            kept[key] = "there is a block again"
        else:
            storage.run(request_each([Remove(key, prune=True)]))
            moved.append(key)
    if not kept:
        storage.run(request_each([Remove(_LIST, prune=True)]))
    return Restoration(moved=tuple(moved), kept=kept)


def _listed(storage: Storage) -> list[str]:
    """Return the keys of quarantined blocks."""
    data = storage.run(read_key(_LIST))
    try:
        document = json.loads(data or b"null")
    except ValueError:
        document = None
    blocks: Any = document.get("blocks") if isinstance(document, dict) else None
    got = "none" if data is None else "another file of this name"
    require(
        isinstance(blocks, dict),
        f"{storage}: expected a directory of quarantined blocks, with {_LIST}, got {got}",
    )
    for key in blocks:
        names = key.split("/")
        require(
            is_block_name(names[-1]) and {"", ".", ".."}.isdisjoint(names),
            f"{storage}: {_LIST}: expected paths of blocks, got {key!r}",
        )
    return list(blocks)


def _outside(store: N5Store, to: Location | None) -> Storage:
    """Open the directory for blocks, which must not be in the container."""
    storage = open_storage(place_of(_beside(store) if to is None else to))
    root, there = store.storage.root, storage.root
    require(
        root is None or there is None or not there.is_relative_to(root),
        f"to: expected a directory outside the container, got {there}",
        str(store),
    )
    return storage


def _beside(container: N5Store) -> Location:
    """Return the default directory for blocks, beside the container."""
    root = container.storage.root
    if root is not None:
        return Path(f"{root}.quarantine")
    store = container.store
    if isinstance(store, FsspecStore) and store.path:
        path = f"{store.path.rstrip('/')}.quarantine"
        return FsspecStore(store.fs, path=path, allowed_exceptions=store.allowed_exceptions)
    raise N5UnsupportedError(
        f"{container}: expected a directory beside the container, got none: pass one (to=)",
        kind="option",
    )


def _is_damaged(store: N5Store, each: Finding, data: bytes) -> bool:
    """Whether a block is still damaged."""
    dataset = parse_attributes(store.run(read_document(each.path)))
    if not isinstance(dataset, DatasetAttributes):
        return False
    position = N5Tuple(each.block or ())
    found = check_block(whole(data), dataset, each.path, position, deep=True)
    return any(problem.repair == "quarantine" for problem in found)


def _remove_same(key: str, digest: object) -> Steps[bool]:
    """Remove a block that still has the same bytes; return whether none is left."""
    (left,) = yield [
        Update(key, lambda now: None if sha256(now or b"").hexdigest() == digest else now)
    ]
    return left is None


def _restore(key: str, data: bytes) -> Steps[bool]:
    """Write a block back, unless there is one again; return whether it is there."""
    (left,) = yield [Update(key, lambda now: data if now is None else now)]
    return bool(left == data)
