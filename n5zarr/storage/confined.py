"""Read local files only inside the container, for servers that present it to others.

N5 spec, "File-system specification", items 1 and 5: nodes are directories and blocks are files in
them; links may lead anywhere. Java and :class:`~n5zarr.storage.local.LocalFiles` follow links.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import override

from zarr.abc.buffer import Buffer, BufferPrototype
from zarr.abc.store import ByteRequest, Store

from n5zarr._zarr import LocalStore


def is_confined(root: str, key: str) -> bool:
    """Whether a key names a file or directory that no link takes out of a root.

    Parameters
    ----------
    root : str
        A directory, resolved.
    key : str
        Names separated by ``/``.

    Returns
    -------
    bool
        True also if the key is missing; False for pipes and devices, which may block a reader.
    """
    path, mode = root, stat.S_IFDIR
    for name in key.split("/") if key else ():
        path = f"{path}/{name}"
        try:
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                if Path(root) not in Path(os.path.realpath(path)).parents:
                    return False
                mode = Path(path).stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError as err:
            if err.errno == errno.ELOOP:  # a loop of links
                return False
            if err.errno == errno.ENAMETOOLONG:
                return True
            raise
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


class ConfinedStore(LocalStore):
    """Local files, read only, without links out of the root; also for :class:`N5Store`."""

    def __init__(self, root: Path | str, *, read_only: bool = True) -> None:
        super().__init__(root, read_only=read_only)

    @override
    async def get(
        self,
        key: str,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        return await super().get(key, prototype, byte_range) if self._holds(key) else None

    @override
    def get_sync(
        self,
        key: str,
        *,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        if not self._holds(key):
            return None
        return super().get_sync(key, prototype=prototype, byte_range=byte_range)

    @override
    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        return [await self.get(key, prototype, wanted) for key, wanted in key_ranges]

    def _holds(self, key: str) -> bool:
        return is_confined(os.path.realpath(self.root), key)


def confined(store: Store) -> Store:
    """Return a store without links out of it, if it holds local files; else the store."""
    return ConfinedStore(store.root) if isinstance(store, LocalStore) else store
