"""``n5zarr.quarantine_blocks``: move damaged blocks out of a container, and back.

N5 takes every directory of a container for a group, so that the blocks go beside it: from
``em.n5/raw/0/1/2`` to ``em.n5.quarantine/<time>/raw/0/1/2``. A block is removed only after its copy
and the list of all copies are written, and only if it still has the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from zarr.storage import FsspecStore

from n5zarr.container.nodes import read_document
from n5zarr.errors import N5UnrepresentableError, N5UnsupportedError
from n5zarr.format.attributes import DatasetAttributes, parse_attributes
from n5zarr.format.grid import block_path, is_block_name
from n5zarr.format.order import N5Tuple
from n5zarr.format.path import join
from n5zarr.storage.opening import open_storage
from n5zarr.storage.place import place_of
from n5zarr.storage.requests import Remove, Steps, Update, put_each, read_key
from n5zarr.store.flows import ask_storage
from n5zarr.tools.validate.blocks import check_block, whole
from n5zarr.tools.validate.files import open_to_repair

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from n5zarr.storage.interface import Storage
    from n5zarr.storage.place import Backend, Location
    from n5zarr.store.n5_store import N5Store
    from n5zarr.tools.validate.findings import Finding

__all__ = ["Quarantined", "Restored", "quarantine_blocks", "restore_blocks"]

_LIST = "quarantine.json"


@dataclass(frozen=True, kw_only=True)
class Quarantined:
    """What :func:`n5zarr.quarantine_blocks` did.

    Parameters
    ----------
    place : str
        The directory that holds the blocks now, for :func:`n5zarr.restore_blocks`; empty if no
        block was moved.
    moved : tuple of str
        The blocks, below the root of the container.
    kept : mapping of str to str
        Why others were kept, by block.
    """

    place: str
    moved: tuple[str, ...]
    kept: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Restored:
    """What :func:`n5zarr.restore_blocks` did.

    Parameters
    ----------
    moved : tuple of str
        The blocks that are in the container again.
    kept : mapping of str to str
        Reasons why other blocks stay, by block.
    """

    moved: tuple[str, ...]
    kept: Mapping[str, str]


def quarantine_blocks(
    store: Location,
    findings: Iterable[Finding],
    *,
    to: Location | None = None,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend = "fsspec",
) -> Quarantined:
    """Move damaged blocks out of a container, so that programs can read and write it again.

    The blocks are then missing, and read as 0. The list ``quarantine.json`` beside the moved blocks
    has the original place of each, and its problem.

    Parameters
    ----------
    store : path, URL or zarr store
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
    opened, _ = open_to_repair(place_of(store, storage_options, backend), "")
    damaged = [each for each in findings if each.repair == "quarantine" and each.block is not None]
    if not damaged:
        return Quarantined(place="", moved=(), kept={})
    folder = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    storage = _outside(opened, to)
    records: dict[str, dict[str, object]] = {}
    kept: dict[str, str] = {}
    for each in damaged:
        key = join(each.path, block_path(N5Tuple(each.block or ())))
        data = opened.ask(read_key(key))
        if data is None or not _is_damaged(opened, each, data):
            kept[key] = "it is gone" if data is None else "it is sound: it was written again"
            continue
        ask_storage(storage, put_each([(f"{folder}/{key}", data)]))
        records[key] = {**each.to_json(), "sha256": _digest(data)}
    if records:
        listed = json.dumps({"container": str(opened), "blocks": records}, indent=2)
        ask_storage(storage, put_each([(f"{folder}/{_LIST}", listed.encode())]))
    moved = []
    for key, record in records.items():
        if opened.ask(_remove_same(key, str(record["sha256"]))):
            moved.append(key)
        else:
            kept[key] = "it was written again meanwhile"
    place = f"{storage}/{folder}" if moved else ""
    return Quarantined(place=place, moved=tuple(moved), kept=kept)


def restore_blocks(
    place: Location,
    store: Location,
    *,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend = "fsspec",
) -> Restored:
    """Move blocks from quarantine back to their original places.

    Parameters
    ----------
    place : path, URL or zarr store
        ``place`` of :class:`Quarantined`.
    store : path, URL or zarr store
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
    container = place_of(store, storage_options, backend, one_of_two=True)
    storage = open_storage(place_of(place, storage_options, backend, one_of_two=True))
    opened, _ = open_to_repair(container, "")
    moved: list[str] = []
    kept: dict[str, str] = {}
    for key in _listed(storage):
        data = ask_storage(storage, read_key(key))
        if data is None:
            kept[key] = "it is not in quarantine"
        elif opened.ask(_put_back(key, data)) != data:
            kept[key] = "there is a block again"
        else:
            ask_storage(storage, _remove(key))
            moved.append(key)
    if not kept:
        ask_storage(storage, _remove(_LIST))
    return Restored(moved=tuple(moved), kept=kept)


def _listed(storage: Storage) -> list[str]:
    """Return the keys of quarantined blocks."""
    data = ask_storage(storage, read_key(_LIST))
    try:
        document = json.loads(data or b"null")
    except ValueError:
        document = None
    blocks = document.get("blocks") if isinstance(document, dict) else None
    if not isinstance(blocks, dict):
        got = "none" if data is None else "another file of this name"
        message = f"{storage}: expected a directory of quarantined blocks, with {_LIST}, got {got}"
        raise N5UnrepresentableError(message, kind="option")
    for key in blocks:
        names = key.split("/")
        if not is_block_name(names[-1]) or not {"", ".", ".."}.isdisjoint(names):
            message = f"{storage}: {_LIST}: expected paths of blocks, got {key!r}"
            raise N5UnrepresentableError(message, kind="option")
    return list(blocks)


def _outside(opened: N5Store, to: Location | None) -> Storage:
    """Open the place for blocks, which is not in the container."""
    storage = open_storage(place_of(_beside(opened) if to is None else to))
    root, there = opened.storage.root, storage.root
    if root is not None and there is not None and there.is_relative_to(root):
        message = f"to: expected a directory outside the container, got {there}"
        raise N5UnrepresentableError(message, kind="option", where=str(opened))
    return storage


def _beside(opened: N5Store) -> Location:
    """Return the place beside a container."""
    root = opened.storage.root
    if root is not None:
        return Path(f"{root}.quarantine")
    store = opened.store
    if isinstance(store, FsspecStore) and store.path:
        path = f"{store.path.rstrip('/')}.quarantine"
        return FsspecStore(store.fs, path=path, allowed_exceptions=store.allowed_exceptions)
    message = f"{opened}: expected a directory beside the container, got none: pass one"
    raise N5UnsupportedError(f"{message} (to=)", kind="option")


def _is_damaged(opened: N5Store, each: Finding, data: bytes) -> bool:
    """Whether a block is still damaged."""
    dataset = parse_attributes(opened.ask(read_document(each.path)))
    if not isinstance(dataset, DatasetAttributes):
        return False
    position = N5Tuple(each.block or ())
    found = check_block(whole(data), dataset, each.path, position, deep=True)
    return any(problem.repair == "quarantine" for problem in found)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _remove(key: str) -> Steps[None]:
    yield [Remove(key, prune=True)]


def _remove_same(key: str, digest: str) -> Steps[bool]:
    """Remove a block that still has the same bytes; return whether it is gone."""

    def change(now: bytes | None) -> bytes | None:
        return None if now is not None and _digest(now) == digest else now

    (left,) = yield [Update(key, change)]
    return left is None


def _put_back(key: str, data: bytes) -> Steps[bytes | None]:
    (now,) = yield [Update(key, lambda there: data if there is None else there)]
    return None if now is None else bytes(now)
