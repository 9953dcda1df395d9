r"""Paths of nodes inside a container.

N5 4.0.0, ``N5KeyValueAccess``: groups are directories, names are taken literally (no percent
decoding, no case folding).

Deviation: Java resolves ``..``, treats ``\`` as an escape, and lets ``//abs`` out of the
container; all of these are refused here.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from n5zarr.errors import N5UnrepresentableError

__all__ = ["check_key", "join", "local_path", "normalize_path"]


def normalize_path(path: str) -> str:
    """Bring the path of a node into its one form.

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
        A name is ``.`` or ``..`` or contains a backslash or NUL (``kind="path"``).

    Examples
    --------
    >>> normalize_path("/em//s0/")
    'em/s0'
    """
    return check_key("/".join(name for name in path.split("/") if name))


def check_key(key: str) -> str:
    """Return the key of a store if it stays inside the container.

    Raises
    ------
    N5UnrepresentableError
        The key is absolute, has an empty name, ``.``, ``..``, a backslash or NUL (``kind="path"``).
    """
    # one pass over a few characters for the usual key, which is checked for every block
    if (
        "." not in key
        and "\\" not in key
        and "//" not in key
        and "\0" not in key
        and key[:1] != "/" != key[-1:]
    ):
        return key
    names = key.split("/")
    if key and not {"", ".", ".."}.isdisjoint(names):
        bad = next(name for name in names if name in ("", ".", ".."))
    elif "\\" in key or "\0" in key:
        bad = next(name for name in names if "\\" in name or "\0" in name)
    else:
        return key
    message = (
        f"path {key!r}: expected names separated by '/', got the name {bad!r}; "
        "names are relative to the container and hold no backslash or NUL"
    )
    raise N5UnrepresentableError(message, kind="path")


def local_path(location: str) -> str:
    """Give the path of a location on a local file system.

    Examples
    --------
    >>> local_path("file:///data/we%20ird.n5"), local_path("we%20ird.n5")
    ('/data/we ird.n5', 'we%20ird.n5')
    """
    found = re.fullmatch(r"file://(?:localhost)?(/.*)", location, re.DOTALL)
    return unquote(found.group(1)) if found else location.removeprefix("file://")


def join(*parts: str) -> str:
    """Join paths, leaving out empty ones.

    Examples
    --------
    >>> join("", "em/s0", "attributes.json")
    'em/s0/attributes.json'
    """
    return "/".join(filter(None, parts))
