"""Local files: remove single files, whole nodes, and empty directories."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.storage.files import is_unfinished, patiently, unfinished_name


def remove(path: Path | str) -> None:
    """Remove a file; do nothing if it is missing or a directory.

    N5 spec, "File-system specification", item 6: datasets are sparse, so any block may be removed.
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
        patiently(os.remove, path)


def remove_tree(
    path: Path, *, keep_top: bool = False, sync: Callable[[set[str]], None] | None = None
) -> None:
    """Remove a directory and everything in it; links are removed, not followed.

    N5 spec, "File-system specification", item 1: a group is a directory, so this removes the group.
    The directory first gets the name of an unfinished file. So others see all of it or nothing,
    even after an interruption, and never a dataset without some blocks or without its document,
    which would be a group.

    Parameters
    ----------
    path : Path
        The directory.
    keep_top : bool
        Whether to remove only its content.
    sync : callable, optional
        Called with directories in which names have changed, before their content is removed.
    """
    hidden, changed = list[tuple[str, str]](), set[str]()
    tops = [path] if not keep_top else list(path.iterdir()) if path.is_dir() else []
    for top in tops:
        if top.is_dir() and not top.is_symlink():
            with contextlib.suppress(FileNotFoundError):
                hidden.append((os.fspath(top), _hidden(top)))
                moved = hidden[-1][0] != hidden[-1][1]
                changed |= {os.fspath(top.parent)} if moved else _remove_documents(top)
        elif keep_top or top.is_symlink():
            remove(top)
    if sync is not None:
        try:
            sync(changed)
        except OSError:  # the disk may still have the old names: do not remove their content
            for name, moved_to in hidden:
                with contextlib.suppress(OSError):  # another program may have created it again
                    os.rename(moved_to, name)
            raise
    for _, name in hidden:
        _remove_hidden(name)


def _remove_hidden(name: str) -> None:
    """Remove a directory and its content; try twice, since nobody would notice leftovers."""
    try:
        shutil.rmtree(name)
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            patiently(shutil.rmtree, name)


def _remove_documents(path: Path) -> set[str]:
    """Remove all documents below a directory; return the directories that had one."""
    found: set[str] = set()
    for directory, _, names in os.walk(path):
        if ATTRIBUTES_JSON in names:
            remove(os.path.join(directory, ATTRIBUTES_JSON))
            found.add(directory)
    return found


def _hidden(path: Path) -> str:
    """Rename a directory so that no reader sees it; return its name, the old one if that fails."""
    name = os.fspath(path)
    if is_unfinished(path.name):
        return name
    hidden = unfinished_name(name)
    try:
        os.rename(name, hidden)
    except OSError:  # a mount point, or no permission to write into the directory above
        return hidden if os.path.lexists(hidden) else name  # network file systems may err
    return hidden


def prune(path: Path, *, keep_top: bool = False) -> None:
    """Remove a directory's empty subdirectories, and the directory itself if it is then empty."""
    for directory, _, _ in os.walk(path, topdown=False):
        if not (keep_top and Path(directory) == path):
            with contextlib.suppress(OSError):  # not empty, or gone
                Path(directory).rmdir()
