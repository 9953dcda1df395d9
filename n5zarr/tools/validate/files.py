"""List the contents of a group or dataset: blocks, and other files."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import batched

from n5zarr.container.block_listing import Ask, StoredBlocks, blocks_by_prefix
from n5zarr.errors import N5Error, N5FormatError
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.block import BlockHeader, BlockMode
from n5zarr.format.foreign import ZARR_DOCUMENTS
from n5zarr.format.grid import is_block_name, parse_block_path
from n5zarr.format.order import N5Tuple
from n5zarr.format.path import join
from n5zarr.storage.files import is_unfinished
from n5zarr.storage.requests import Entry, List, Steps, request_each
from n5zarr.storage.url import is_of_one_key
from n5zarr.tools.jobs.incomplete import INCOMPLETE_JSON, LEDGER_NAME
from n5zarr.tools.jobs.nodes import read_ends
from n5zarr.tools.jobs.parts import PART_NAME
from n5zarr.tools.validate.findings import Finding, Severity, finding

_LISTINGS = 64  # directories in one batch of listings
_LEADING_ZERO = re.compile(r"0[0-9]+", re.ASCII)
# of Zarr beside N5, of operating systems, and of object stores
_HARMLESS = re.compile(r"\.zattrs|\.zmetadata|\.DS_Store|\._.*|Thumbs\.db|\.nfs.*|\.n5zarr.*")

_OF_ZARR = (
    "a document of Zarr beside N5: readers of Zarr take the node as it says; remove it if no "
    "program needs it"
)


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


def _is_harmless(name: str) -> bool:
    known = (_HARMLESS, PART_NAME, LEDGER_NAME)
    return name in ZARR_DOCUMENTS or any(pattern.fullmatch(name) for pattern in known)


def _may_be_left(entry: Entry) -> bool:
    """Whether an entry may be a leftover: a file, or a directory that was being removed."""
    return not entry.is_dir or is_unfinished(entry.name)


def _leftover(path: str, file: str) -> Finding | None:
    """Recognise leftovers of killed writers, in groups and among blocks."""
    name = file.rpartition("/")[2]
    if is_unfinished(name):
        message = "expected no unfinished file, got one of a killed writer; --clean removes it"
        return finding("unfinished-file", path, message, file=file)
    if name.endswith(".__lock"):
        message = "expected no lock file, got one of a killed tensorstore; --clean removes it"
        return finding("lock-file", path, message, file=file)
    if name == INCOMPLETE_JSON:
        message = (
            "expected a complete result, got the mark of an interrupted run; --resume continues, "
            "--overwrite starts again"
        )
        return finding("incomplete", path, message, file=file)
    return None


# ---------------------------------------------------------------------- datasets


def list_blocks(
    ask: Ask, path: str, grid: N5Tuple, report: Callable[[Finding], None]
) -> Iterator[N5Tuple]:
    """Yield the grid positions of the stored blocks of a dataset in order; report all other files.

    N5 spec, "File-system specification", items 5 and 6: paths of blocks, which may be missing.

    Parameters
    ----------
    ask : callable
        Runs a flow.
    path : str
        The dataset.
    grid : tuple of int
        Number of blocks along each axis, N5 order.
    report : callable
        Receives a finding for each other file, and each directory that storage refuses to list.

    Yields
    ------
    tuple of int
        A position in N5 order.
    """
    (listed,) = each_or_error(lambda paths: [ask(blocks_by_prefix(p, grid)) for p in paths], [path])
    if isinstance(listed, StoredBlocks):
        yield from map(N5Tuple, map(tuple, listed.rows.tolist()))
        for stray in _strays_among(path, listed.others, grid):
            report(stray)
        return
    # storage cannot list them together, or refuses a directory, which single listings tell
    *of_folder, n_last = grid or (1,)  # a dataset without dimensions has one block, named "0"
    n_levels = max(1, len(grid))
    folders = [""]
    for _ in range(n_levels - 1):
        each = _names_in(ask, path, folders, report, is_last=False)
        folders = [join(folder, name) for folder, names in each for name in names]
    for folder, names in _names_in(ask, path, folders, report, is_last=True):
        above = parse_block_path(folder, N5Tuple(tuple(of_folder))) if folder else N5Tuple(())
        for name in names:
            # int() is slow for thousands of digits
            number = int(name) if len(name) <= len(str(n_last)) else n_last
            if above is None or number >= n_last:
                report(_outside_grid(path, join(folder, name), grid))
            else:
                yield N5Tuple((*above, number)[: len(grid)])


def _names_in(
    ask: Ask,
    path: str,
    folders: Sequence[str],
    report: Callable[[Finding], None],
    *,
    is_last: bool,
) -> Iterator[tuple[str, list[str]]]:
    """List directories in a dataset; yield the names of blocks, or of directories of blocks."""
    for some in batched(folders, _LISTINGS):
        paths = [join(path, folder) for folder in some]
        listings = each_or_error(lambda p: ask(_list(p)), paths)
        for folder, entries in zip(some, listings, strict=True):
            if isinstance(entries, Exception):
                report(finding("unreadable", path, reason(entries), file=join(path, folder)))
                continue
            names = []
            for entry in entries or ():
                if is_block_name(entry.name) and entry.is_dir in (None, not is_last):
                    names.append(entry.name)
                elif join(folder, entry.name) != ATTRIBUTES_JSON:
                    report(_stray(path, folder, entry, is_last=is_last))
            # shorter names are smaller numbers, as there are no leading zeros
            yield folder, sorted(names, key=lambda name: (len(name), name))


def _list(paths: Sequence[str]) -> Steps[list[Sequence[Entry] | None]]:
    return request_each(List(path, unfinished=True) for path in paths)


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
            if (folder, name) not in seen and join(*names) != ATTRIBUTES_JSON:
                seen.add((folder, name))
                yield _stray(path, folder, Entry(name, is_dir), is_last=is_last)
            break


def _outside_grid(path: str, name: str, grid: N5Tuple) -> Finding:
    message = (
        f"expected a position below {grid}, got {name.replace('/', ', ')}; it is never read: "
        "remove it, or correct dimensions"
    )
    return finding("outside-grid", path, message, file=join(path, name))


def _stray(path: str, folder: str, entry: Entry, *, is_last: bool) -> Finding:
    """Classify an entry in the directory of a dataset that is neither a block nor its document."""
    name, file = entry.name, join(path, folder, entry.name)
    leftover = _leftover(path, file) if _may_be_left(entry) else None
    if leftover is not None:
        return leftover
    if _LEADING_ZERO.fullmatch(name):
        message = (
            f"expected a name without leading zeros, got {name!r}: no program reads it; rename it "
            f"to {name.lstrip('0') or '0'!r} if there is no such block"
        )
        return finding("leading-zero", path, message, file=file)
    severity: Severity | None = None
    if is_block_name(name):
        wanted, got = ("block", "directory") if is_last else ("directory of blocks", "file")
        message = f"expected a {wanted}, got a {got}; no program reads it"
    elif entry.is_dir and not folder:
        message = "a directory in a dataset: it is not listed; open it by its path"
        severity = "note"
    elif name in ZARR_DOCUMENTS:
        message, severity = _OF_ZARR, "note"
    else:
        message = "expected blocks only, got another file; remove it if it is not needed"
        severity = "note" if not folder or _is_harmless(name) else None
    return finding("stray-file", path, message, file=file, severity=severity)


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
        elif entry.name in ZARR_DOCUMENTS:
            yield finding("stray-file", path, _OF_ZARR, file=file, severity="note")
        elif entry.is_dir is False and not _is_harmless(entry.name):
            yield _file_in_group(ask, path, file)


def _file_in_group(ask: Ask, path: str, file: str) -> Finding:
    """Report a file in a group; a broken link is an error, as its target may be a node."""
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
    """Report a file in a group if its header is that of a block."""
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
