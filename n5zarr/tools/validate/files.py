"""List the contents of a group or dataset: blocks, and other files."""

from __future__ import annotations

import errno
import re
from itertools import batched
from typing import TYPE_CHECKING

from n5zarr.container.prefix_listing import blocks_by_prefix
from n5zarr.errors import N5Error, N5FormatError, N5UnsupportedError
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.block import BlockHeader, BlockMode
from n5zarr.format.foreign import ZARR_DOCUMENTS
from n5zarr.format.grid import is_block_name, parse_block_path
from n5zarr.format.order import N5Tuple
from n5zarr.format.path import join
from n5zarr.storage.files import is_unfinished
from n5zarr.storage.requests import Ends, Entry, List, Steps
from n5zarr.storage.url import is_of_one_key
from n5zarr.store.bdv_xml import project_or_container
from n5zarr.store.flows import ask_storage
from n5zarr.tools.jobs.incomplete import INCOMPLETE_JSON
from n5zarr.tools.validate.blocks import ENDS
from n5zarr.tools.validate.findings import finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from n5zarr.container.block_listing import Ask
    from n5zarr.container.prefix_listing import StoredBlocks
    from n5zarr.storage.place import Place
    from n5zarr.store.n5_store import N5Store
    from n5zarr.tools.validate.findings import Finding, Severity

__all__ = [
    "ask_quietly",
    "blocks_of",
    "check_group_files",
    "each_or_error",
    "open_to_check",
    "open_to_repair",
    "read_ends",
    "reason",
]

_LISTINGS = 64  # directories in one batch of listings
_LEADING_ZERO = re.compile(r"0[0-9]+", re.ASCII)
# of Zarr beside N5 (n5zarr's own, zarr-n5's), of operating systems, and of object stores
_HARMLESS = re.compile(r"\.zattrs|\.zmetadata|\.DS_Store|\._.*|Thumbs\.db|\.nfs.*|\.n5zarr.*")


def each_or_error[T](
    ask: Callable[[Sequence[str]], Sequence[T]], keys: Sequence[str]
) -> list[T | Exception]:
    """Request keys together; the answer for an unreadable key is its error."""
    try:
        return list(ask(keys))
    except Exception as err:
        if not (isinstance(err, N5Error) or is_of_one_key(err)):
            raise
        if len(keys) == 1:
            return [err]
        half = len(keys) // 2
        return each_or_error(ask, keys[:half]) + each_or_error(ask, keys[half:])


def reason(err: Exception) -> str:
    """Return the reason why a node cannot be read."""
    return err.message if isinstance(err, N5Error) else f"{type(err).__name__}: {err}"


def _list(paths: Sequence[str]) -> Steps[Sequence[Sequence[Entry] | None]]:
    answers: Sequence[Sequence[Entry] | None] = yield [List(p, unfinished=True) for p in paths]
    return answers


def _is_harmless(name: str) -> bool:
    return name in ZARR_DOCUMENTS or _HARMLESS.fullmatch(name) is not None


def _may_be_left(entry: Entry) -> bool:
    """Whether an entry is a file, or a directory that a killed program was removing."""
    return not entry.is_dir or is_unfinished(entry.name)


def _leftover(path: str, file: str) -> Finding | None:
    """Recognise leftovers of killed writers, in groups and among blocks."""
    name = file.rpartition("/")[2]
    if is_unfinished(name):
        message = "expected no unfinished file, got one of a killed writer; --clean removes it"
        return finding("unfinished-file", path, f"{message} it", file=file)
    if name.endswith(".__lock"):
        message = "expected no lock file, got one that a killed tensorstore left; --clean removes"
        return finding("lock-file", path, f"{message} it", file=file)
    if name == INCOMPLETE_JSON:
        message = (
            "expected a complete result, got the mark of an interrupted run; --resume continues, "
            "--overwrite starts again"
        )
        return finding("incomplete", path, message, file=file)
    return None


def open_to_check(place: Place, path: str, *, read_only: bool = False) -> tuple[N5Store, str]:
    """Open the container of a location, or the one that BigDataViewer's XML names."""
    with project_or_container(place, path, read_only=read_only) as (_, opened, node):
        return opened, node


def open_to_repair(place: Place, path: str) -> tuple[N5Store, str]:
    """Open a container to change files in it; raise if the store is read-only."""
    opened, node = open_to_check(place, path)
    if opened.read_only:
        message = "expected a writable store, got a read-only one"
        raise N5UnsupportedError(message, kind="read-only", where=str(opened))
    return opened, node


def ask_quietly[T](opened: N5Store, steps: Steps[T]) -> T:
    """Run a flow; its warnings are findings here."""
    return ask_storage(opened.storage, steps)


# ---------------------------------------------------------------------- datasets


def blocks_of(
    ask: Ask, path: str, grid: N5Tuple, *, go_on: bool = False
) -> Iterator[N5Tuple | Finding]:
    """Yield the grid positions of the stored blocks of a dataset in order, and all stray files.

    N5 spec, "File-system specification", items 5 and 6: paths of blocks, which may be missing.

    Parameters
    ----------
    ask : callable
        Runs a flow.
    path : str
        The dataset.
    grid : tuple of int
        Number of blocks along each axis, N5 order.
    go_on : bool
        Whether a directory that storage refuses to list is a finding, and no error.

    Yields
    ------
    tuple of int or Finding
        A position in N5 order, or the problem of a file or directory.
    """
    listed = _by_prefix(ask, path, grid, go_on=go_on)
    if listed is not None:
        yield from map(N5Tuple, map(tuple, listed.rows.tolist()))
        yield from _strays_among(path, listed.others, grid)
        return
    folders = [""]
    for level in range(max(1, len(grid))):
        is_last = level == max(1, len(grid)) - 1
        below: list[str] = []
        for folder, entries in _listed(ask, path, folders, go_on=go_on):
            if isinstance(entries, Exception):
                yield finding("unreadable", path, reason(entries), file=join(path, folder))
                continue
            names = _block_names(entries or (), is_last=is_last)
            for entry in entries or ():
                if entry.name not in names:
                    yield from _stray(path, folder, entry, is_last=is_last)
            inside = [join(folder, name) for name in sorted(names, key=_index)]
            if is_last:
                yield from _positions(path, inside, grid)
            else:
                below += inside
        folders = below


def _by_prefix(ask: Ask, path: str, grid: N5Tuple, *, go_on: bool) -> StoredBlocks | None:
    """List the blocks together; None if storage cannot, or if directories tell what it refuses."""
    try:
        return ask(blocks_by_prefix(path, grid))
    except Exception as err:
        if go_on and (isinstance(err, N5Error) or is_of_one_key(err)):
            return None
        raise


def _strays_among(path: str, keys: Sequence[str], grid: N5Tuple) -> Iterator[Finding]:
    """Classify keys below a dataset that are not blocks of its grid; each directory once."""
    n_levels = max(1, len(grid))
    seen = set()
    for names in (key.split("/") for key in keys):
        for level, name in enumerate(names):
            is_last, is_dir = level == n_levels - 1, level < len(names) - 1
            folder = join(*names[:level])
            if is_block_name(name) and is_dir is not is_last:
                if is_last:
                    yield _outside_grid(path, join(*names), grid)
                continue
            if (folder, name) not in seen:
                seen.add((folder, name))
                yield from _stray(path, folder, Entry(name, is_dir), is_last=is_last)
            break


def _listed(
    ask: Ask, path: str, folders: Sequence[str], *, go_on: bool
) -> Iterator[tuple[str, Sequence[Entry] | Exception | None]]:
    """List directories in a dataset, some at a time."""

    def list_them(paths: Sequence[str]) -> Sequence[Sequence[Entry] | None]:
        return ask(_list(paths))

    for some in batched(folders, _LISTINGS):
        paths = [join(path, folder) for folder in some]
        listings = each_or_error(list_them, paths) if go_on else list_them(paths)
        yield from zip(some, listings, strict=True)


def _index(name: str) -> tuple[int, str]:
    return len(name), name  # no leading zeros: shorter is smaller


def _block_names(entries: Sequence[Entry], *, is_last: bool) -> set[str]:
    return {e.name for e in entries if is_block_name(e.name) and e.is_dir in (None, not is_last)}


def _positions(path: str, names: Sequence[str], grid: N5Tuple) -> Iterator[N5Tuple | Finding]:
    for name in names:
        position = parse_block_path(name, grid)
        yield _outside_grid(path, name, grid) if position is None else position


def _outside_grid(path: str, name: str, grid: N5Tuple) -> Finding:
    message = f"expected a position below {grid}, got {name.replace('/', ', ')}"
    message += "; it is never read: remove it, or correct dimensions"
    return finding("outside-grid", path, message, file=join(path, name))


def _stray(path: str, folder: str, entry: Entry, *, is_last: bool) -> Iterator[Finding]:
    """Classify an entry in the directory of a dataset that is not a block."""
    name, file = entry.name, join(path, folder, entry.name)
    if name == ATTRIBUTES_JSON and not folder:
        return
    leftover = _leftover(path, file) if _may_be_left(entry) else None
    if leftover is not None:
        yield leftover
    elif _LEADING_ZERO.fullmatch(name):
        message = f"expected a name without leading zeros, got {name!r}: no program reads it; "
        message += f"rename it to {name.lstrip('0') or '0'!r} if there is no such block"
        yield finding("leading-zero", path, message, file=file)
    elif is_block_name(name):
        wanted = "a block" if is_last else "a directory of blocks"
        got = "a directory" if is_last else "a file"
        message = f"expected {wanted}, got {got}; no program reads it"
        yield finding("stray-file", path, message, file=file)
    elif entry.is_dir and not folder:
        message = "a directory in a dataset: it is not listed; open it by its path"
        yield finding("stray-file", path, message, file=file, severity="note")
    else:
        message = "expected blocks only, got another file; remove it if it is not needed"
        severity: Severity | None = "note" if not folder or _is_harmless(name) else None
        yield finding("stray-file", path, message, file=file, severity=severity)


# ---------------------------------------------------------------------- groups


def check_group_files(ask: Ask, path: str) -> Iterator[Finding]:
    """Find the leftovers and files in a group, and blocks whose dataset has no document.

    Parameters
    ----------
    ask : callable
        Runs a flow.
    path : str
        The group.
    """
    (entries,) = ask(_list([path]))
    for entry in entries or ():
        file = join(path, entry.name)
        if not _may_be_left(entry) or entry.name == ATTRIBUTES_JSON:
            continue
        leftover = _leftover(path, file)
        if leftover is not None:
            yield leftover
        elif is_block_name(entry.name):
            yield from _orphan(ask, file)
        elif entry.is_dir is False and not _is_harmless(entry.name):
            yield _file_in_group(ask, path, file)


def _file_in_group(ask: Ask, path: str, file: str) -> Finding:
    """Tell whether a file in a group is a link that leads nowhere: a node may have been there."""
    try:
        ask(read_ends([file]))
    except N5FormatError as err:
        return finding("unreadable", path, err.message, file=file)
    except OSError as err:
        if err.errno == errno.ELOOP:  # a link to itself
            return finding("unreadable", path, str(err), file=file)
        # no other file needs reading
    message = "a file in a group: programs of N5 do not see it"
    return finding("stray-file", path, message, file=file, severity="note")


def _orphan(ask: Ask, file: str) -> Iterator[Finding]:
    """Tell whether a file is a block, by its header: the rank is that of its path, or higher."""
    (ends,) = each_or_error(lambda keys: ask(read_ends(keys)), [file])
    if isinstance(ends, Exception) and not isinstance(ends, N5FormatError):
        yield finding("unreadable", join(*file.split("/")[:-1]), reason(ends), file=file)
    if ends is None or isinstance(ends, Exception):
        return
    try:
        header = BlockHeader.from_bytes(ends[1])
    except N5FormatError:  # no block
        return
    n_dims = len(header.block_shape)
    names = file.split("/")
    if header.mode is BlockMode.OBJECT or not 1 <= n_dims <= len(names):
        return
    if all(map(is_block_name, names[-n_dims:])):
        message = (
            f"expected no blocks in a group, got one of {n_dims} dimensions; write the document of "
            "its dataset again, or remove it"
        )
        yield finding("orphan-block", join(*names[:-n_dims]), message, file=file)


def read_ends(keys: Sequence[str]) -> Steps[Sequence[tuple[int, bytes, bytes] | None]]:
    """Read size, first and last bytes of some keys; None for each missing one."""
    answers: Sequence[tuple[int, bytes, bytes] | None] = yield [Ends(k, ENDS, ENDS) for k in keys]
    return answers
