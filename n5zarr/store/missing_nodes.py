"""Describe what exists at a location, for errors and warnings."""

from __future__ import annotations

import os
import warnings
from bisect import bisect
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from n5zarr.container.foreign import check_n5
from n5zarr.container.memory import Node
from n5zarr.container.walk import PathPatterns, Selection, Walk, WalkNode
from n5zarr.errors import ErrorsAt, N5Error, N5Warning
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.path import groups_above, join
from n5zarr.storage.not_found import NotFoundError, listed, similar
from n5zarr.storage.requests import Steps, list_each
from n5zarr.store.flows import root_message
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.dataset_view import DatasetView

_DATASETS = 4  # number of datasets in a message
_NODES = 1000  # largest number of nodes in the search for them


def not_found(store: N5Store, path: str, expected: str = "a group or dataset") -> NotFoundError:
    """Make the error of a missing node, which names what exists instead.

    Parameters
    ----------
    store : N5Store
        The container.
    path : str
        The node, normalised.
    expected : str, optional
        The expected kind of node.
    """
    try:
        message = _message(store, path, expected)
    except Exception as err:  # an error of the search must not hide the missing node
        is_foreign = isinstance(err, N5Error) and err.kind == "foreign"
        message = str(err) if is_foreign else f"{store}: /{path}: expected {expected}, got nothing"
    return NotFoundError(message)


def existing_node(store: N5Store, path: str, expected: str = "a group or dataset") -> Node:
    """Return a node, which must exist; see :func:`not_found`.

    Raises
    ------
    FileNotFoundError
        The node does not exist.
    """
    node = store.node(path)
    if node is None:
        raise not_found(store, path, expected)
    return node


def _message(store: N5Store, path: str, expected: str) -> str:
    """Describe a missing node and its surroundings."""
    if store.node("") is None:
        return root_message(store)
    message = f"{store}: /{path}: expected {expected}, got nothing"
    name = str(store).replace(os.sep, "/").rstrip("/").rpartition("/")[2]
    if path.partition("/")[0] == name:
        return f"{message}; {name} is given twice"
    above, node = _nearest(store, path)
    if isinstance(node, DatasetView):
        return f"{message}; /{above} is a dataset, and below it are its blocks"
    names = [name for name, _ in store.run(store.container.nodes.children(above))]
    missing = path.removeprefix(above).lstrip("/").partition("/")[0]
    meant = similar(missing, names)
    question = f"; did you mean /{join(above, meant)}?" if meant else ""
    return f"{message}; in /{above}: {listed(names) or 'nothing'}{question}"


def _nearest(store: N5Store, path: str) -> tuple[str, Node | None]:
    """Return the nearest node above a path; what is above a node exists, too, if servers list."""
    groups = groups_above(path) or [""]
    above = groups[-1]
    if store.node(above) is None:
        above = groups[max(0, bisect(groups, 0, key=lambda path: store.node(path) is None) - 1)]
    return above, store.node(above)


def datasets_below(store: N5Store, path: str) -> str:
    """Return the names of a few datasets below a group, for a message; empty if it has none.

    Parameters
    ----------
    store : N5Store
        The container.
    path : str
        The group, normalised.
    """
    paths: list[str] = []
    with suppress(N5Error):  # a server may not list
        node = store.node(path)
        walk = Walk(store.container.nodes, store.run)
        for found, _ in islice(walk.run(path, node) if node else (), _NODES):
            if isinstance(found.node, DatasetView):
                paths.append(found.path)
            if len(paths) > _DATASETS:
                break
    return ", ".join(paths[:_DATASETS]) + (", ..." if len(paths) > _DATASETS else "")


def selected_nodes(store: N5Store, path: str, paths: PathPatterns) -> Iterator[WalkNode]:
    """Find a node and those below it that patterns select; warn of links that are not followed.

    Parameters
    ----------
    store : N5Store
        The container.
    path : str
        The node, normalised.
    paths : PathPatterns
        Nodes to find, by their paths below the first one, with those above and below them.

    Raises
    ------
    FileNotFoundError
        The node does not exist.
    """

    def warn(link: str, why: str) -> None:
        warnings.warn(f"{store}: /{link}: omitted, as it is {why}", N5Warning, stacklevel=2)

    walk = Walk(store.container.nodes, store.run, Selection(paths=paths), warn)
    return (found for found, _ in walk.run(path, existing_node(store, path)))


def check_group(store: N5Store, path: str) -> None:
    """Raise if a group that seems empty is a node of Zarr.

    On servers, opening a group requests only a few names.

    Raises
    ------
    N5FormatError
        The group is a node of Zarr (``kind="foreign"``).
    """
    if store.storage.root is not None:
        return
    with ErrorsAt(f"{store}: {path or '/'}"):
        store.run(_check_group(path))


def _check_group(path: str) -> Steps[None]:
    (entries,) = yield from list_each([path])
    if not any(entry.name == ATTRIBUTES_JSON for entry in entries):
        yield from check_n5(path, entries)
