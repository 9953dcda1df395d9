"""Run the flows of a container: methods of :class:`~n5zarr.N5Store` beyond zarr's interface.

Also read its root, or describe what exists instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from n5zarr._zarr import sync, wait_for_loop
from n5zarr.container.container import Container
from n5zarr.container.memory import Node
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.foreign import FIRST_BYTES, ZARR_DOCUMENTS, Foreign, file_from, zarr_node
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import join, normalize_path
from n5zarr.storage.ending import check_wanted, within_call
from n5zarr.storage.interface import Storage
from n5zarr.storage.not_found import NotFoundError, local_root_message
from n5zarr.storage.requests import Get, Steps, put_each
from n5zarr.store.info import read_version


class FlowRunner:
    """A container and its storage, whose flows can be run; see :mod:`n5zarr.storage.requests`."""

    storage: Storage  # of the container's keys
    container: Container  # its methods return flows, for `run` and `run_async`

    def run[T](self, steps: Steps[T]) -> T:
        """Run a flow of the container, and wait for its result; not for code on an event loop."""
        return self.storage.run(steps, self.container.warn)

    async def run_async[T](self, steps: Steps[T]) -> T:
        """Run a flow of the container with await."""
        check_wanted()
        return await within_call(self.storage.run_async(steps, self.container.warn))

    def node(self, path: str) -> Node | None:
        """Read the node at a path again, not from memory; see :meth:`Container.node`."""
        return self.run(self.container.node(normalize_path(path)))

    def locate(self, key: str) -> str:
        """Return the name of a Zarr key's node or block in N5's terms, for messages."""
        return self.container.locate(key)


@contextmanager
def undoing(store: FlowRunner) -> Iterator[None]:
    """Undo what Zarr writes through a store in a context, if an error ends it.

    Documents are put back, and new nodes removed. Blocks of older arrays stay.
    """
    container, memory = store.container, store.container.memory
    memory.before = before = dict[str, bytes | None]()
    try:
        yield
    except BaseException:
        wait_for_loop()
        for path, data in reversed(before.items()):
            if data is not None:
                store.run(put_each([(join(path, ATTRIBUTES_JSON), data)]))
                memory.keep(path, None)
            elif path in memory.created:
                store.run(container.delete_dir(path))
            else:
                store.run(container.delete(join(path, "zarr.json")))
        raise
    finally:
        memory.before = None


def read_root(store: FlowRunner, *, read_only: bool) -> dict[str, JSON]:
    """Read the root of a container; a writable container need not exist yet.

    Raises
    ------
    NotFoundError
        The container is missing and cannot be created: read-only, or the path is a file.
    N5Error
        The root is broken, has a later version, or is a node of Zarr.
    """
    sync(store.storage.open(read_only=read_only))
    if store.node("") is None and read_only:
        raise NotFoundError(root_message(store))
    version, backend = store.run(read_version()), store.storage.backend
    library: dict[str, JSON] = {"backend": backend} if backend else {}
    return {"container": store.container.name, "kind": "container", "n5": version, **library}


def root_message(store: FlowRunner) -> str:
    """Return the message for a location that has no container."""
    if store.storage.given is not None:
        return local_root_message(store.storage.given)
    found = None
    with suppress(Exception):  # not every store accepts the empty key
        found = store.run(_foreign_root())
    way = "nothing; check the location; if the server does not list, open a dataset by its path"
    return f"{store.container.name}: expected an N5 container, got {found or way}"


def _foreign_root() -> Steps[Foreign | None]:
    """Recognise a file or a node of Zarr at the location of a container; list nothing."""
    names = sorted(ZARR_DOCUMENTS)
    start, *documents = yield [Get("", part=(0, FIRST_BYTES)), *map(Get, names)]
    there = {
        name: bytes(value)
        for name, value in zip(names, documents, strict=True)
        if value is not None and not _is_page(bytes(value))
    }
    found = zarr_node(there, there.get("zarr.json"))
    if found is not None or not start or _is_page(bytes(start)):
        return found
    return file_from(bytes(start))


def _is_page(data: bytes) -> bool:
    """Whether the data are a web page, which some servers return for any request."""
    return data.lstrip().startswith(b"<") and b"<SpimData" not in data
