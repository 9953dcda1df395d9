"""Tell missing blocks from those that lie in shards of Java N5 4, which have other positions."""

from __future__ import annotations

from n5zarr.codecs.shard import check_no_shard
from n5zarr.container.nodes import Nodes
from n5zarr.errors import ErrorsAt
from n5zarr.format.grid import is_block_name
from n5zarr.format.path import join
from n5zarr.storage.requests import Get, Steps, list_each, read_key


def check_missing(nodes: Nodes, path: str, missing: str = "") -> Steps[None]:
    """Look at one stored block of a dataset of which a read found none, once.

    The one at the origin; if it is missing, the first one of local files, where listing is cheap.
    A read that finds a file parses it, and raises if it is a shard.

    Parameters
    ----------
    nodes : Nodes
        The nodes of the container.
    path : str
        Path of the dataset.
    missing : str, optional
        Key of the block that the read did not find.

    Raises
    ------
    N5BlockError
        It is a shard (``kind="shard"``).
    """
    view, plain = nodes.memory.dataset(path), nodes.memory.plain
    if path in plain or view is None:
        return
    n_levels = max(1, view.ndim)
    block = "/".join("0" * n_levels)
    stored = None if missing == join(path, block) else (yield from read_key(join(path, block)))
    if stored is None and nodes.has_stamps:
        block = yield from _first_block(path, n_levels)
        if not block:
            return
        (stored,) = yield [Get(join(path, block))]
    if stored is not None:
        with ErrorsAt(f"{nodes.name}: {path or '/'}: block {block}"):
            check_no_shard(memoryview(stored), view.dataset.data_type, view.dataset.compression)
    plain.add(path)


def _first_block(path: str, n_levels: int) -> Steps[str]:
    """Return the path of a stored block below a directory; empty if there is none.

    Looks into few directories, which storage must list.
    """
    (entries,) = yield from list_each([path])
    is_dir = n_levels > 1
    blocks = [e.name for e in entries if is_block_name(e.name) and e.is_dir in (None, is_dir)]
    for name in sorted(blocks, key=lambda digits: (len(digits), digits)):
        below = (yield from _first_block(join(path, name), n_levels - 1)) if is_dir else ""
        if below or not is_dir:
            return join(name, below)
    return ""
