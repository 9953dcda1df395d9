r"""Normalize and check the paths of nodes and the keys of stores.

N5 spec, "File-system specification", item 1: groups are directories.

Java: ``N5KeyValueAccess``. Names are literal: no percent decoding, no case folding.

Deviation: Java resolves ``..``, treats ``\`` as an escape, and follows ``//abs`` out of the
container. Here these are errors.
"""

from __future__ import annotations

import re

from n5zarr.errors import N5UnrepresentableError

_NO_NAME = re.compile(r"[\\\0\ud800-\udfff]")


def normalize_path(path: str) -> str:
    """Return the path of a node without surplus slashes.

    N5 spec, "File-system specification", item 1: the path of a group is that of its directory.

    Parameters
    ----------
    path : str
        Names separated by ``/``. Slashes at either end and repeated slashes do not matter.

    Returns
    -------
    str
        The names joined by single slashes; ``""`` for the root.

    Raises
    ------
    N5UnrepresentableError
        A name is ``.`` or ``..`` or contains a backslash, NUL or half of a surrogate pair
        (``kind="path"``).

    Examples
    --------
    >>> normalize_path("/em//s0/")
    'em/s0'
    """
    return check_key("/".join(name for name in path.split("/") if name))


def is_name(text: str) -> bool:
    """Whether a text is valid as a node's name; it may come from another program's attributes."""
    if not text or "/" in text:
        return False
    try:
        check_key(text)
    except N5UnrepresentableError:
        return False
    return True


def check_key(key: str) -> str:
    """Return a key unchanged; raise if it leaves the container.

    Raises
    ------
    N5UnrepresentableError
        The key is absolute, has an empty name, ``.``, ``..``, a backslash, NUL or half of a
        surrogate pair (``kind="path"``).
    """
    # every block's key is checked: the common case must be cheap
    if (
        "." not in key
        and "\\" not in key
        and "//" not in key
        and "\0" not in key
        and key.isascii()
        and key[:1] != "/" != key[-1:]
    ):
        return key
    names = key.split("/")
    if key and not {"", ".", ".."}.isdisjoint(names):
        bad = next(name for name in names if name in ("", ".", ".."))
    elif _NO_NAME.search(key):
        bad = next(name for name in names if _NO_NAME.search(name))
    else:
        return key
    message = (
        f"path {key!r}: expected names separated by '/', got the name {bad!r}; "
        "names are relative to the container and hold no backslash, NUL or unpaired surrogate"
    )
    raise N5UnrepresentableError(message, kind="path")


def groups_above(path: str) -> list[str]:
    """List the paths of the groups above a node, the root first.

    Examples
    --------
    >>> groups_above("em/labels/s0"), groups_above("")
    (['', 'em', 'em/labels'], [])
    """
    names = path.split("/") if path else []
    return ["/".join(names[:n]) for n in range(len(names))]


def join(*parts: str) -> str:
    """Join paths with ``/``, without the empty ones.

    Examples
    --------
    >>> join("", "em/s0", "attributes.json")
    'em/s0/attributes.json'
    """
    return "/".join(filter(None, parts))
