"""The error for a missing container or node, which says what exists instead in local files."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING
from zipfile import BadZipFile, ZipFile

from zarr.errors import ArrayNotFoundError, GroupNotFoundError

from n5zarr.format.foreign import FIRST_BYTES, Foreign, file_from, root_in_zip

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["NotFoundError", "check_local_root", "listed", "local_root_message", "similar"]

_SHOWN = 5  # names in a message


class NotFoundError(GroupNotFoundError, ArrayNotFoundError):
    """There is no container or node; a FileNotFoundError, as zarr's errors are."""


def check_local_root(root: Path, *, needs_directory: bool) -> None:
    """Check that a container may be, or is, at a path.

    Parameters
    ----------
    root : Path
        The root of the container.
    needs_directory : bool
        Whether it must be there already.

    Raises
    ------
    NotFoundError
        It is a file, or it must be there and is not.
    PermissionError
        The directory above may not be searched.
    """
    if not root.is_dir() and (_exists(root) or needs_directory):
        raise NotFoundError(local_root_message(root))


def _exists(path: Path) -> bool:
    """Whether there is anything at a path; where that may not be known, raise."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def local_root_message(root: Path) -> str:
    """Say what is at the path of a container that cannot be opened."""
    if root.is_file():
        return f"{root}: expected an N5 container, got {_file(root)}"
    if not root.is_dir():
        if special := _special(root):
            return f"{root}: expected an N5 container, got {special}"
        if root.is_symlink():
            link = f"a link to {root.readlink()}, which does not exist"
            return f"{root}: expected an N5 container, got {link}"
        nearest = next(above for above in root.parents if above.exists())
        if nearest.is_file():
            return f"{root} does not exist; {nearest} is {_file(nearest)}"
        meant = similar(root.relative_to(nearest).parts[0], _names_in(nearest))
        question = f"; did you mean {nearest / meant}?" if meant else ""
        return f"{root} does not exist; {nearest} is the nearest that exists{question}"
    names = [entry.name for entry in root.iterdir()]
    what = f"a directory of only {listed(names)}" if names else "an empty directory"
    return (
        f"{root}: expected an N5 container, got {what}; the root of a container has an "
        "attributes.json, or directories that have one"
    )


def _special(path: Path) -> str | None:
    """Tell what is neither a file nor a directory; None if nothing is there."""
    if path.is_fifo():
        found = "a named pipe"
    elif path.is_socket():
        found = "a socket"
    elif path.is_char_device() or path.is_block_device():
        found = "a device"
    else:
        return None
    return f"{found}; a container is a directory: check the path"


def _file(path: Path) -> Foreign:
    """Look at a file."""
    with path.open("rb") as file:
        found = file_from(file.read(FIRST_BYTES))
    if found.what != "a zip file":
        return found
    try:
        with ZipFile(path) as archive:
            root = root_in_zip(archive.namelist())
    except BadZipFile:
        return Foreign("a damaged zip file", "check how it was copied")
    if root is None:
        return Foreign("a zip file without a container", "no attributes.json is in it")
    return Foreign("a zip file", f"open {f'{path}|zip:{root}|n5:' if root else f'zip://{path}'!r}")


def _names_in(directory: Path) -> list[str]:
    try:
        return [entry.name for entry in directory.iterdir()]
    except OSError:  # no permission to list it
        return []


def similar(name: str, names: list[str]) -> str | None:
    """Return the name that is most like a mistyped one; None if none is.

    Examples
    --------
    >>> similar("Sampel.n5", ["attributes.json", "sample.n5"])
    'sample.n5'
    """
    by_form = {known.casefold(): known for known in names}
    found = get_close_matches(name.casefold(), by_form, n=1)
    return by_form[found[0]] if found else None


def listed(names: list[str]) -> str:
    """Name some, and say whether there are more."""
    shown = sorted(names)[:_SHOWN]
    return ", ".join(shown) + (", ..." if len(names) > _SHOWN else "")
