"""Refer to chunks as parts of blocks, by URLs; copy chunks that are not parts of blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import batched, takewhile
from typing import NamedTuple
from urllib.parse import quote

from n5zarr.codecs.buffers import BufferLike
from n5zarr.codecs.compress import codec_of
from n5zarr.codecs.shard import LAST, is_likely
from n5zarr.container import codec_chain
from n5zarr.errors import ErrorsAt, N5BlockError, N5Error, N5UnsupportedError
from n5zarr.format.grid import block_path
from n5zarr.format.order import N5Tuple
from n5zarr.format.path import join
from n5zarr.images.source import ends_of_blocks
from n5zarr.storage.requests import Ends, Get, Steps, Work
from n5zarr.storage.url import is_chain
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.jobs.nodes import BlockTask, block_tasks
from n5zarr.tools.jobs.run import RunOptions
from n5zarr.tools.virtualize.layout import VirtualArray, VirtualMember
from n5zarr.zarr_view.chunks import (
    START,
    chunk_part,
    chunk_slice,
    decode_chunk,
    make_chunk,
)
from n5zarr.zarr_view.dataset_view import DatasetView

MAX_INLINED = 2**26
"""Bytes of chunks that are copied, at most, unless a user asks for more."""

_BATCH = 256  # blocks that one task refers to
_WHOLE = 16  # blocks that are read whole at a time
_NOT_REACHED = ("memory", "zip")  # schemes of places that other programs cannot read in parts
_ALIASES = {"gcs": "gs", "s3a": "s3"}


class Chunk(NamedTuple):
    """A chunk of an array: the place of its bytes, or the bytes.

    Parameters
    ----------
    coords : tuple of int
        Position in the chunk grid, in the order of the array.
    key : str
        Key of the block, below the root of the storage.
    offset, length : int
        Where the chunk is in the block, in bytes.
    data : bytes or None
        The chunk itself, if it is not a part of the block.
    """

    coords: tuple[int, ...]
    key: str
    offset: int
    length: int
    data: bytes | None = None


def each_chunk(
    store: N5Store,
    members: Sequence[VirtualMember],
    run: RunOptions,
    max_inlined: int,
    counts: Counter[str],
) -> Iterator[tuple[VirtualArray, list[Chunk]]]:
    """Refer to all blocks of the arrays of a hierarchy, and yield some at a time, in any order.

    Parameters
    ----------
    store : N5Store
        The container.
    members : sequence of VirtualMember
        The hierarchy.
    run : RunOptions
        Where to read the headers.
    max_inlined : int
        Maximum number of bytes of copied chunks.
    counts : Counter
        Gets the numbers ``n_referenced``, ``n_bytes_referenced``, ``n_inlined`` and
        ``n_bytes_inlined``.

    Yields
    ------
    tuple
        An array, and some of its chunks.

    Raises
    ------
    N5UnsupportedError
        The copied chunks have more bytes than ``max_inlined`` (``kind="option"``).
    """
    arrays = [member for member in members if isinstance(member, VirtualArray)]
    total = sum(array.n_chunks * array.view.full_n_bytes for array in arrays)
    tasks = (
        _ReferTask(array, blocks)
        for array in arrays
        for blocks in block_tasks(store, array.source, array.view, _BATCH)
    )
    work = partial(_refer_to_task, store)
    for task, chunks in run.each(
        work, tasks, "referring", total, is_light=lambda task: task.is_light
    ):
        for chunk in chunks:
            what = "referenced" if chunk.data is None else "inlined"
            counts[f"n_{what}"] += 1
            counts[f"n_bytes_{what}"] += chunk.length
        if counts["n_bytes_inlined"] > max_inlined:
            raise _too_much(task.array, max_inlined, f"{store}: {task.array.source or '/'}")
        yield task.array, chunks


class _ReferTask(NamedTuple):
    array: VirtualArray
    blocks: BlockTask

    @property
    def n_bytes(self) -> int:
        return self.blocks.n_bytes

    @property
    def is_light(self) -> bool:
        return self.blocks.is_light


def _refer_to_task(store: N5Store, task: _ReferTask) -> list[Chunk]:
    """Refer to some blocks of one array."""
    path, view, positions = task.blocks
    ends = ends_of_blocks(store, path, positions, _n_start(view), LAST)
    try:
        return store.run(_refer(path, view, positions, ends, is_local=store.storage.has_stamps))
    except N5Error as err:
        err.where = f"{store}: {err.where or path or '/'}"
        raise


def _refer(
    path: str,
    view: DatasetView,
    positions: Sequence[N5Tuple],
    known: Sequence[tuple[int, bytes, bytes] | None],
    *,
    is_local: bool,
) -> Steps[list[Chunk]]:
    """Refer to the blocks at some positions: read their headers, and other blocks completely.

    Parameters
    ----------
    path : str
        Path of the dataset.
    view : DatasetView
        The dataset as an array of plain Zarr.
    positions : sequence of tuple of int
        Positions in the block grid, N5 order.
    known : sequence
        Sizes and ends of the blocks that have been read, see :func:`ends_of_blocks`.
    is_local : bool
        Whether to look at the end of each block, and not only of the first: it may be a shard of
        Java N5 4. On a server this needs one more request for a block.

    Returns
    -------
    list of Chunk
        Without blocks that are missing.

    Raises
    ------
    N5Error
        A block is damaged, or does not fit the dataset.
    """
    keys = {position: join(path, block_path(position)) for position in positions}
    unknown = [key for key, ends in zip(keys.values(), known, strict=True) if ends is None]
    n_start = _n_start(view)
    starts = yield [
        Ends(key, n_start, LAST if is_local or n == 0 else 0) for n, key in enumerate(unknown)
    ]
    left, may_be_sharded = iter(starts), not is_local and any(map(_may_be_shard, starts))
    chunks, others = list[Chunk](), list[N5Tuple]()
    for (position, key), ends in zip(keys.items(), known, strict=True):
        start = next(left) if ends is None else ends
        if start is None:
            continue
        part = None
        if not may_be_sharded and (ends is not None or not _may_be_shard(start)):
            with suppress(N5BlockError):  # reading the whole block reports its defect
                part = chunk_part(memoryview(start[1]), start[0], view, position)
        if part is None:
            others.append(position)
        else:
            chunks.append(Chunk(view.presented(position), key, *part))
    for some in batched(others, _WHOLE):
        blocks = yield [Get(keys[position], settled=True) for position in some]
        found = [(p, block) for p, block in zip(some, blocks, strict=True) if block is not None]
        made = yield [Work(partial(_chunk, block, path, view, p)) for p, block in found]
        chunks += made
    return chunks


def _n_start(view: DatasetView) -> int:
    """Return how many bytes at the beginning of a block tell whether it can be referred to."""
    return len(view.full_header) + 4 + START


def _may_be_shard(ends: tuple[int, bytes, bytes] | None) -> bool:
    """Whether the end of a file looks like a shard of Java N5 4."""
    if ends is None:
        return False
    size, first, last = ends
    return is_likely((first + last)[-LAST:] if len(first) + len(last) >= size else last, size)


def _chunk(block: BufferLike, path: str, view: DatasetView, position: N5Tuple) -> Chunk:
    """Find the chunk in a completely read block, or make it."""
    name = block_path(position)
    key = join(path, name)
    data = memoryview(block)
    coords = view.presented(position)
    with ErrorsAt(f"{path or '/'}: block {name}"):
        part = chunk_slice(data, view, position)
        if part is not None:
            start, stop, _ = part.indices(len(data))
            return Chunk(coords, key, start, stop - start)
        if view.transcoded is None:
            made = make_chunk(data, view, position, small=True)
        else:
            made = codec_chain.encode(decode_chunk(data, view, position), view.transcoded)
    return Chunk(coords, key, 0, len(memoryview(made)), bytes(made))


def _too_much(array: VirtualArray, max_inlined: int, where: str) -> N5UnsupportedError:
    """Make the error that says why chunks are copied, and what to do."""
    view = array.view
    ways = "max_inlined= (--max-inlined) allows more; n5zarr.convert (n5zarr convert) copies all"
    if view.passes_payloads and codec_of(view.compression).passes:
        why = "its blocks are truncated at the end of axes"
        if view.chunk_grid == "regular":
            ways = (
                "chunk_grid='rectilinear' (--chunk-grid) refers to them, too, in JSON and "
                f"Icechunk; {ways}"
            )
    else:
        stored = f"{view.dataset.type_name} with {view.dataset.compression.type}"
        why = f"no codec of zarr-python reads its blocks, of {stored}"
    message = (
        f"expected to copy at most {max_inlined} bytes of chunks into the references, got more: "
        f"{why}; {ways}"
    )
    return N5UnsupportedError(message, kind="option", where=where)


# ---------------------------------------------------------------------- URLs


def scheme_of(url: str) -> str:
    """Return the scheme of a URL, in lower case; ``""`` for a path.

    Examples
    --------
    >>> scheme_of("S3://bucket/a.n5"), scheme_of("/data/a.n5")
    ('s3', '')
    """
    scheme, separator, _ = url.partition("://")
    return scheme.lower() if separator else ""


def url_of_container(store: N5Store) -> str:
    """Return the URL of a container, without secrets; its parts are not quoted, unless it is HTTP.

    Raises
    ------
    N5UnsupportedError
        Other programs cannot read the container, which is in memory or in an archive
        (``kind="option"``).
    """
    root = store.storage.root
    if root is not None:
        path = root.as_posix()
        return f"file://{path}" if path.startswith("/") else f"file:///{path}"
    url = str(store.storage)
    scheme = scheme_of(url)
    if not scheme or scheme in _NOT_REACHED or is_chain(url):
        raise N5UnsupportedError(
            f"{url}: expected local files or a URL, to which references can point; url= (--url) "
            "names the place where readers find the container",
            kind="option",
        )
    return f"{_ALIASES.get(scheme, scheme)}{url[len(scheme) :]}".rstrip("/")


def plain_prefix(url: str) -> str:
    """Return the part of a URL before the first name with signs that are quoted, with a slash.

    Icechunk quotes the URLs of chunks, but compares them with unquoted prefixes.

    Examples
    --------
    >>> plain_prefix("s3://bucket/a.n5"), plain_prefix("s3://bucket/my data/a.n5")
    ('s3://bucket/a.n5/', 's3://bucket/')
    """
    scheme, separator, place = url.partition("://")
    names = takewhile(lambda name: quote(name) == name, place.split("/"))
    return f"{scheme}{separator}{'/'.join(names)}/"


def url_of_block(container: str, key: str) -> str:
    """Return the URL of a block from the URL of the container and the key of the block.

    Examples
    --------
    >>> url_of_block("https://host/a.n5", "em #1/0/0"), url_of_block("s3://b/a.n5", "em #1/0/0")
    ('https://host/a.n5/em%20%231/0/0', 's3://b/a.n5/em #1/0/0')
    """
    is_http = scheme_of(container) in ("http", "https")
    return f"{container}/{quote(key, safe='/') if is_http else key}"
