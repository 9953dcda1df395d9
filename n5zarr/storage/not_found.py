"""The error for a missing container or node, which names what exists instead in local files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from zarr.errors import ArrayNotFoundError, GroupNotFoundError

from n5zarr.format.foreign import FIRST_BYTES, Foreign, file_from, root_in_zip

_SHOWN = 5  # names in a message


class NotFoundError(GroupNotFoundError, ArrayNotFoundError):
    """A container or node is missing; a FileNotFoundError, like zarr's errors."""


def check_local_root(root: Path, *, needs_directory: bool) -> None:
    """Raise unless a path can hold a container, or holds a directory.

    Parameters
    ----------
    root : Path
        The root of the container.
    needs_directory : bool
        Whether the directory must exist.

    Raises
    ------
    NotFoundError
        The path is a file, or the directory must exist and does not.
    PermissionError
        No permission to search the directory above.
    """
    if not root.is_dir() and (_exists(root) or needs_directory):
        raise NotFoundError(local_root_message(root))


def _exists(path: Path) -> bool:
    """Whether a path exists; raise if the system does not permit the check."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def local_root_message(root: Path) -> str:
    """Describe the path of a container that cannot be opened."""
    if root.is_file():
        return f"{root}: expected an N5 container, got {_file(root)}"
    if not root.is_dir():
        if special := _special(root):
            return f"{root}: expected an N5 container, got {special}"
        if root.is_symlink():
            return (
                f"{root}: expected an N5 container, got a link to {root.readlink()}, "
                "which does not exist"
            )
        nearest = next(above for above in root.parents if above.exists())
        if nearest.is_file():
            return f"{root} does not exist; {nearest} is {_file(nearest)}"
        meant = similar(root.relative_to(nearest).parts[0], _names_in(nearest))
        question = f"; did you mean {nearest / meant}?" if meant else ""
        return f"{root} does not exist; the nearest existing directory is {nearest}{question}"
    names = [entry.name for entry in root.iterdir()]
    what = f"a directory with only {listed(names)}" if names else "an empty directory"
    return (
        f"{root}: expected an N5 container, got {what}; the root of a container has an "
        "attributes.json, or directories that have one"
    )


def _special(path: Path) -> str | None:
    """Describe a pipe, socket or device; None for other paths."""
    kinds = {
        "a named pipe": path.is_fifo(),
        "a socket": path.is_socket(),
        "a device": path.is_char_device() or path.is_block_device(),
    }
    found = next((kind for kind, is_it in kinds.items() if is_it), None)
    return found and f"{found}; a container is a directory: check the path"


def _file(path: Path) -> Foreign:
    """Recognise the format of a file."""
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
        return Foreign("a zip file without a container", "it has no attributes.json")
    return Foreign("a zip file", f"open {f'{path}|zip:{root}|n5:' if root else f'zip://{path}'!r}")


def _names_in(directory: Path) -> list[str]:
    try:
        return [entry.name for entry in directory.iterdir()]
    except OSError:  # no permission to list it
        return []


def meant(name: str, known: Iterable[str]) -> str:
    """Return a question about the known name that is similar to a misspelt one, or nothing.

    Examples
    --------
    >>> meant("axisorder", ["axis_order", "coords"])
    "; did you mean 'axis_order'?"
    """
    found = similar(name, list(known))
    return f"; did you mean {found!r}?" if found else ""


def similar(name: str, names: list[str]) -> str | None:
    """Return the name most similar to a mistyped one; None if no name is similar.

    Examples
    --------
    >>> similar("Sampel.n5", ["attributes.json", "sample.n5"])
    'sample.n5'
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only for a message

    by_form = {known.casefold(): known for known in names}
    found = get_close_matches(name.casefold(), by_form, n=1)
    return by_form[found[0]] if found else None


def listed(names: list[str]) -> str:
    """Join the first names, with a mark if there are more."""
    shown = sorted(names)[:_SHOWN]
    return ", ".join(shown) + (", ..." if len(names) > _SHOWN else "")
