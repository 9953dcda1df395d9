"""Run the flows of a container: methods of :class:`~n5zarr.N5Store` beyond zarr's interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from n5zarr.format.path import normalize_path

if TYPE_CHECKING:
    from n5zarr.container.container import Container
    from n5zarr.container.memory import Node
    from n5zarr.storage.interface import Storage
    from n5zarr.storage.requests import Steps

__all__ = ["FlowRunner"]


class FlowRunner:
    """A container and its storage, whose flows can be run; see :mod:`n5zarr.storage.requests`."""

    _storage: Storage
    _container: Container

    @property
    def storage(self) -> Storage:
        """The storage of the container's keys."""
        return self._storage

    @property
    def container(self) -> Container:
        """The container; its methods return flows, for :meth:`run` and :meth:`run_async`."""
        return self._container

    def run[T](self, steps: Steps[T]) -> T:
        """Run a flow of the container, and wait for its result; not for code on an event loop."""
        return self._storage.run(steps, self._container.warn)

    async def run_async[T](self, steps: Steps[T]) -> T:
        """Run a flow of the container with await."""
        return await self._storage.run_async(steps, self._container.warn)

    def node(self, path: str) -> Node | None:
        """Read the node at a path again, not from memory; see :meth:`Container.node`."""
        return self.run(self._container.node(normalize_path(path)))

    def locate(self, key: str) -> str:
        """Return the name of a Zarr key's node or block in N5's terms, for messages."""
        return self._container.locate(key)
