"""File systems of fsspec: what they are, and what they need in threads and forked processes."""

from __future__ import annotations

import asyncio
import pickle
import threading
from typing import TYPE_CHECKING, Any

from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest

from n5zarr.storage.forks import fork_error

if TYPE_CHECKING:
    from fsspec.asyn import AsyncFileSystem

_ARCHIVES = {"zip", "tar", "libarchive"}


def is_any(fs: AsyncFileSystem, protocols: set[str]) -> bool:
    """Whether a file system has one of some protocols."""
    own = fs.protocol
    return not protocols.isdisjoint([own] if isinstance(own, str) else own)


def read_members_in_turn(fs: Any) -> None:  # noqa: ANN401 - fsspec's wrapper has no types
    """Let threads read an archive one after the other: they share the position in its file."""
    archive = getattr(fs, "sync_fs", None)
    if archive is None or not is_any(fs, _ARCHIVES):
        return
    # fsspec has one object for each archive, whatever the number of stores
    lock: threading.Lock = vars(archive).setdefault("n5zarr_lock", threading.Lock())

    def read(*args: object, **options: object) -> bytes:
        with lock:
            data: bytes = archive.cat_file(*args, **options)
        return data

    async def cat_file(*args: object, **options: object) -> bytes:
        return await asyncio.to_thread(read, *args, **options)

    fs._cat_file = cat_file
    with lock:
        archive.exists("")  # makes the list of members, before threads look into it


def made_anew(fs: AsyncFileSystem) -> AsyncFileSystem:
    """Return a file system of this process with the options of one of its parent."""
    try:
        made: AsyncFileSystem = pickle.loads(pickle.dumps(fs))  # noqa: S301 - our own
    except Exception as err:
        why = f"its file system cannot be made anew ({err}); open it in this process"
        raise fork_error(type(fs).__name__, why) from err
    read_members_in_turn(made)
    return made


def limits(asked: ByteRequest) -> dict[str, int | None]:
    """Return a part of a value as fsspec's file systems are asked for it."""
    match asked:
        case RangeByteRequest(start, end):
            return {"start": start, "end": end}
        case OffsetByteRequest(offset):
            return {"start": offset, "end": None}
        case _:
            return {"start": -asked.suffix, "end": None}


def lacks_bucket(err: Exception) -> bool:
    """Whether S3 says that there is no such bucket, which s3fs reports as a missing key."""
    response = getattr(err.__cause__, "response", None) or {}
    return bool(response.get("Error", {}).get("Code") == "NoSuchBucket")
