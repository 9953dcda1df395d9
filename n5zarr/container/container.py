"""Present a container as a hierarchy of Zarr: the meaning of each key, and the flow for it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from n5zarr.codecs.buffers import BufferLike
from n5zarr.container.chunks import Chunks
from n5zarr.container.formats import in_format
from n5zarr.container.hierarchy import Hierarchy, KeyListing, names
from n5zarr.container.memory import Memory, Node
from n5zarr.container.nodes import Nodes, check_of_node
from n5zarr.container.options import ViewOptions
from n5zarr.errors import N5Error, N5UnrepresentableError, N5Warning
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.lenient_json import JSON
from n5zarr.storage.requests import RemoveTree, Steps, read_key
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.keys import ChunkKey, MetadataKey, ZarrFormat


class KeyReader(Protocol):
    """The keys that a store serves: of a container as it is, or with its axes as coordinates."""

    shows_consolidated: bool
    """Whether readers look for consolidated metadata."""

    def read(self, key: str) -> Steps[BufferLike | None]:
        """Read a document, a chunk, or another file in a group."""

    def exists(self, key: str) -> Steps[bool]:
        """Whether a key has a value."""

    def dataset_of(
        self, path: str, zarr_format: ZarrFormat, *, anew: bool = False, as_blocks: bool = False
    ) -> Steps[tuple[str, DatasetView] | None]:
        """Read the dataset of an array if its blocks hold the elements of the array unchanged."""

    def is_empty(self, path: str) -> Steps[bool]:
        """Whether there is nothing at or below a path."""

    def names(self, path: str) -> Steps[Sequence[str]]:
        """Return the names directly below a path, sorted."""

    def keys_below(self, path: str) -> Iterable[Steps[Sequence[str]]]:
        """Return flows that each return the next keys in a directory; ``""`` is the root."""


class Container:
    """One container as one hierarchy of Zarr.

    Each method that returns ``Steps`` is a generator of requests, see
    :mod:`n5zarr.storage.requests`; the errors that it raises name the container and the path.

    Parameters
    ----------
    name : str
        Name of the container, for messages.
    options : ViewOptions
        Codecs, format and axis order of the hierarchy.
    has_stamps : bool
        Whether storage can tell that another program has written a document.
    memory : Memory, optional
        The memory of the store object; a new one by default.
    read_only : bool, optional
        Whether nothing is written, so that documents read by Zarr need not be remembered.
    """

    shows_consolidated = True

    def __init__(
        self,
        name: str,
        options: ViewOptions,
        *,
        has_stamps: bool,
        memory: Memory | None = None,
        read_only: bool = False,
    ) -> None:
        self.name = name
        self.options = options
        self.read_only = read_only
        self.memory = Memory() if memory is None else memory
        self.nodes = Nodes(options, self.memory, has_stamps, name)
        self.hierarchy = Hierarchy(self.nodes)
        self.chunks = Chunks(self.nodes)

    # ------------------------------------------------------------------ reading

    def read(self, key: str, *, is_copied: bool = False) -> Steps[BufferLike | None]:
        """Read a document, a chunk (see :meth:`Chunks.read`), or a file that does not belong to N5.

        Raises
        ------
        N5Error
            The node or block exists, but is broken or not supported.
        """
        parsed = self.hierarchy.parse_key(key)
        try:
            if isinstance(parsed, MetadataKey):
                return (yield from self._serve(parsed))
            if isinstance(parsed, ChunkKey):
                chunk = yield from self.chunks.read(parsed, is_copied=is_copied)
                if chunk is not None or not self._may_be_a_file(parsed):
                    return chunk
            return (yield from self.hierarchy.other_file(key))
        except N5Error as err:
            if err.kind == "foreign" and not isinstance(parsed, MetadataKey):
                return (yield from read_key(key))  # a file of a Zarr hierarchy
            raise self._located(err, parsed.path if parsed else key) from err.__cause__

    def _serve(self, key: MetadataKey) -> Steps[bytes | None]:
        is_missing = key.zarr_format == 2 and (yield from self.nodes.formats.is_surely_v3(key.path))
        node = None if is_missing else (yield from self.chunks.node_to_open(key.path))
        return (yield from self.document(key, node))

    def document(self, key: MetadataKey, node: Node | None) -> Steps[bytes | None]:
        """Make a document of a node that was just read; None if the node has no such document.

        Remembers it: Zarr's next change starts from it.
        """
        document = yield from self.hierarchy.served(key, node)
        value = None if document is None else json.dumps(document).encode()
        if not self.read_only:
            # if there is none, Zarr's next change starts from "{}": others may be creating the node
            self.memory.served[key] = _without_consolidated(document or {}, value or b"{}")
        return value

    def exists(self, key: str) -> Steps[bool]:
        """Whether a key has a value."""
        parsed = self.hierarchy.parse_key(key)
        try:
            if isinstance(parsed, MetadataKey):
                node = yield from self.chunks.node_anew(parsed.path)
                return node is not None and self.hierarchy.has(parsed, node)
            if isinstance(parsed, ChunkKey):
                exists = yield from self.chunks.exists(parsed)
                if exists or not self._may_be_a_file(parsed):
                    return exists
            return (yield from self.hierarchy.other_file(key)) is not None
        except N5Error as err:
            if err.kind == "foreign" and not isinstance(parsed, MetadataKey):
                return (yield from read_key(key)) is not None
            raise self._located(err, parsed.path if parsed else key) from err.__cause__

    def check_chunk(self, key: str) -> Steps[None]:
        """Raise an error that names the block if the block of a chunk is damaged."""
        parsed = self.hierarchy.parse_key(key)
        if isinstance(parsed, ChunkKey):
            yield from self.chunks.check(parsed)

    def _may_be_a_file(self, chunk: ChunkKey) -> bool:
        """Whether a key may be that of a file in a group that has the name of a chunk of v2."""
        is_v2 = self.options.zarr_format is None and chunk.zarr_format == 2
        return is_v2 and isinstance(self.memory.node(chunk.path), GroupAttributes)

    def node(self, path: str) -> Steps[Node | None]:
        """Read the node at a path again, not from memory.

        Parameters
        ----------
        path : str
            Normalised; ``""`` is the root.

        Returns
        -------
        DatasetView, GroupAttributes or None
            A dataset, a group, or nothing.

        Raises
        ------
        N5Error
            The node exists, but is broken or not supported.
        """
        return (yield from self._locating(self.chunks.node_anew(path), path))

    def dataset_of(
        self, path: str, zarr_format: ZarrFormat, *, anew: bool = False, as_blocks: bool = False
    ) -> Steps[tuple[str, DatasetView] | None]:
        """Return path and view of a dataset if its blocks hold the elements of the Zarr array.

        Raises N5Error as :meth:`Chunks.open_dataset`.

        Parameters
        ----------
        path : str
            Path of the array.
        zarr_format : {2, 3}
            Format of the array.
        anew : bool, optional
            Whether to read the document again: another program may have resized the dataset.
        as_blocks : bool, optional
            Whether blocks may hold other elements.
        """
        view = yield from self._locating(self.chunks.open_dataset(path, anew=anew), path)
        view = view if view.zarr_format == zarr_format else in_format(view, zarr_format)
        # the fast path takes regular grids
        is_fit = as_blocks or (view.holds_elements and not view.truncated)
        return (path, view) if is_fit else None

    # ------------------------------------------------------------------ listing

    def names(self, path: str) -> Steps[Sequence[str]]:
        """Return the names directly below a path, sorted; warn of broken children."""
        # on servers, each document costs a request
        known = None if self.nodes.has_stamps else self.memory.node(path)
        group = known if isinstance(known, GroupAttributes) else None
        return (yield from self._locating(names(self.hierarchy, path, group), path))

    def keys_below(self, path: str) -> Iterator[Steps[Sequence[str]]]:
        """Yield flows that each return the next keys in a directory; ``""`` is the root."""
        return (self._locating(flow, path) for flow in KeyListing(self.hierarchy, path).flows())

    def is_empty(self, path: str) -> Steps[bool]:
        """Whether there is nothing at or below a path."""
        if (yield from self.node(path)) is not None:
            return False
        for flow in self.keys_below(path):
            if (yield from flow):
                return False
        return True

    # ------------------------------------------------------------------ writing

    def write(self, key: str, value: memoryview, *, only_new: bool = False) -> Steps[None]:
        """Write a document or a chunk.

        A document becomes a change of ``attributes.json``: Zarr's changes since this container
        served the document are applied to the document on disk. A chunk becomes a block, truncated
        at the end of an axis.

        Parameters
        ----------
        key : str
            Key of a document or chunk.
        value : memoryview
            The bytes to write.
        only_new : bool, optional
            Write nothing if the key has a value.

        Raises
        ------
        N5UnrepresentableError
            N5 cannot hold the value, or Zarr has no such key; nothing is written.
        N5UnsupportedError
            The array can only be read.
        N5Error
            Another program has replaced the array (``kind="changed"``).
        """
        parsed = self.hierarchy.parse_key(key)
        if parsed is None:
            fixed = self.options.zarr_format
            message = (
                f"key {key!r}: expected a Zarr{f' v{fixed}' if fixed else ''} document or chunk; "
                "N5 holds no other values"
            )
            if fixed is not None:
                message += (
                    f". The store shows one format: N5Store(..., zarr_format={fixed}); zarr's "
                    f"functions create it with zarr_format={fixed}, too"
                )
            raise N5UnrepresentableError(message, kind="path", where=self.name)
        if isinstance(parsed, ChunkKey):
            steps = self.chunks.write(parsed, value)
        else:
            # take it now, not when storage runs: other tasks may write through this container
            if self._is_of_other_format(parsed):
                self.memory.served.setdefault(parsed, b"{}")  # unless Zarr knows it
            served = self.memory.served.get(parsed)
            steps = self._write_document(parsed, bytes(value), served, only_new=only_new)
        located = self._locating(steps, parsed.path)
        return self._unless_exists(key, parsed, located) if only_new else located

    def update(self, key: str, change: Callable[[bytes | None], bytes | None]) -> Steps[None]:
        """Replace a chunk by a function of it; see :meth:`Chunks.update`."""
        chunk = self.hierarchy.parse_key(key)
        if not isinstance(chunk, ChunkKey):
            message = f"key {key!r}: expected the key of a chunk"
            raise N5UnrepresentableError(message, kind="path", where=self.name)
        return self._locating(self.chunks.update(chunk, change), chunk.path)

    def update_attributes(
        self,
        path: str,
        change: Callable[[Mapping[str, JSON]], Mapping[str, JSON]],
        *,
        is_group: bool,
    ) -> Steps[None]:
        """Replace the attributes of a node by a function of them: :func:`update_attributes`."""
        from n5zarr.container.updates import update_attributes  # noqa: PLC0415 - for writing

        yield from self._locating(update_attributes(path, change, is_group=is_group), path)
        self.memory.forget_attributes(path)

    def _unless_exists(
        self, key: str, parsed: ChunkKey | MetadataKey, steps: Steps[None]
    ) -> Steps[None]:
        if self.options.zarr_format is None and isinstance(parsed, MetadataKey):
            # groups that Zarr creates above a new node must not change the format of other nodes
            exists = (yield from self.node(parsed.path)) is not None
        else:
            exists = yield from self.exists(key)
        if not exists:
            yield from steps

    def _write_document(
        self, key: MetadataKey, value: bytes, served: bytes | None, *, only_new: bool
    ) -> Steps[None]:
        from n5zarr.container.updates import parse_document, write_document  # noqa: PLC0415 - for writing

        document = parse_document(key, value)
        self.memory.listed.clear()
        yield from self.nodes.check_version()
        node = yield from write_document(
            self.nodes,
            key,
            document,
            served,
            # in v2 three keys share one `attributes.json`, which may exist without this key
            only_new=only_new and (key.name == "zarr.json" or self.options.zarr_format is None),
        )
        self.memory.has_root = True
        if node is None:
            return
        if key.zarr_format == 2 and self._is_of_other_format(key):
            # Zarr may be about to write the attributes, too
            self.memory.served.setdefault(MetadataKey(key.path, ".zattrs"), b"{}")
        # of a new array, Zarr v2 writes `.zarray` and `.zattrs` at once; the latter makes a group
        is_array_by_now = key.name == ".zattrs" and key.path in self.memory.created
        if not (is_array_by_now and isinstance(node, GroupAttributes)):
            # without a stamp, so that it is read again: others may have replaced it since
            self.memory.keep(key.path, node)
        self.memory.served[key] = _without_consolidated(document, value)

    def _is_of_other_format(self, key: MetadataKey) -> bool:
        """Whether the node of a document had the other format when it was last read."""
        if self.options.zarr_format is not None:
            return False
        known = self.memory.node(key.path)
        return known is not None and self.nodes.formats.of(known) != key.zarr_format

    def delete(self, key: str) -> Steps[None]:
        """Remove a document or a chunk, if there is one."""
        match self.hierarchy.parse_key(key):
            case ChunkKey() as chunk:
                yield from self._locating(self.chunks.remove(chunk), chunk.path)
            case MetadataKey() as document:
                yield from self._locating(self._remove_document(document), document.path)
            case None:
                pass

    def _remove_document(self, key: MetadataKey) -> Steps[None]:
        self.memory.listed.clear()
        node = yield from self.chunks.node_anew(key.path)
        if (node is not None and self.hierarchy.has(key, node)) or key.name == ".zmetadata":
            from n5zarr.container.updates import remove_document  # noqa: PLC0415 - for writing

            yield from remove_document(key)
        self.memory.forget_document(key)

    def delete_dir(self, path: str) -> Steps[None]:
        """Remove a node and everything below it, or the chunks of an array below a path."""
        self.memory.listed.clear()
        try:
            exists = (yield from self.nodes.node(path)) is not None
        except N5Error as err:
            check_of_node(err)
            exists = True  # a broken node can be removed too
        if exists or not path:
            yield [RemoveTree(path)]
        elif self.memory.node(path) is None and path not in self.memory.created:
            for flow in self.keys_below(path):
                for key in (yield from flow):
                    yield from self.delete(key)
        self.memory.forget(path)  # also nodes that other programs have removed

    # ------------------------------------------------------------------ messages

    def _locating[T](self, steps: Steps[T], path: str) -> Steps[T]:
        """Run a flow, and add the container and the path to its errors."""
        try:
            return (yield from steps)
        except N5Error as err:
            raise self._located(err, path) from err.__cause__

    def _located(self, err: N5Error, path: str) -> N5Error:
        """Add the container and, if it is missing, the path to an error."""
        if not err.where.startswith(self.name):
            err.where = f"{self.name}: {err.where or path or '/'}"
        return err

    def locate(self, key: str) -> str:
        """Translate a Zarr key into N5's terms, for messages.

        Parameters
        ----------
        key : str
            A Zarr key.

        Returns
        -------
        str
            Container, path and block.
        """
        parsed = self.hierarchy.parse_key(key)
        if isinstance(parsed, ChunkKey):
            location = self.chunks.location(parsed)
            if location is not None:
                return self.chunks.block_name(location.path, location.grid_position)
        return f"{self.name}: {key if parsed is None else parsed.path or '/'}"

    def warn(self, message: str) -> None:
        """Warn the user, once per message and store object; not at all if there is no message."""
        if message and message not in self.memory.warned:
            self.memory.warned.add(message)
            warnings.warn(f"{self.name}: {message}", N5Warning, stacklevel=2)


def _without_consolidated(document: Mapping[str, JSON], value: bytes) -> bytes:
    """Return a document without the metadata of the nodes below, but with a mark of them."""
    if document.get("consolidated_metadata") is None:
        return value
    return json.dumps({**document, "consolidated_metadata": True}).encode()
