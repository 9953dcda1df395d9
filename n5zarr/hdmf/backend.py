"""Read and write HDMF data in N5 with hdmf-zarr's classes: ``N5IO`` and ``NWBN5IO``.

hdmf-zarr accepts an :class:`~n5zarr.N5Store`, but does some things by path: it opens a path,
follows a link into another container and starts processes that open a path. The classes here do
these by store. They override hdmf-zarr's methods for that, ``_resolve_store`` and ``_open_file``.
What a process does can be overridden in ``_write_buffer_zarr`` of hdmf-zarr's queue; the class of
the queue cannot be chosen: ``write``, ``export`` and ``write_dataset`` create the queue and keep it
in ``ZarrIO.__dci_queue``.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, override
from zipfile import is_zipfile

import zarr
from hdmf.utils import docval, get_docval
from hdmf_zarr import NWBZarrIO, ZarrIO
from hdmf_zarr.utils import ZarrIODataChunkIteratorQueue
from pynwb import NWBFile
from zarr.abc.store import Store
from zarr.errors import ZarrUserWarning

from n5zarr._zarr import sync
from n5zarr.container.options import require
from n5zarr.errors import N5UnrepresentableError, N5UnsupportedError, N5Warning
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.hdmf.advice import advising
from n5zarr.hdmf.rows import StoredRows, check_rows, tables_in
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.ending import ending
from n5zarr.storage.removing import remove
from n5zarr.storage.url import is_url
from n5zarr.store.flows import undoing
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.jobs.nodes import walk
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.keys import METADATA_NAMES

_MODES = ("r", "r-", "r+", "a", "w", "w-", "x")
_CHANGES = ("r+", "a")
_QUEUE = "_ZarrIO__dci_queue"  # Python's name for ZarrIO.__dci_queue
_OPTIONS = ("number_of_jobs", "max_threads_per_process", "multiprocessing_context")
_ZARR = tuple(name for names in METADATA_NAMES.values() for name in names)


@contextmanager
def not_warned_of_consolidation() -> Iterator[None]:
    """Ignore zarr's warning of consolidated metadata: in N5 they are only a mark."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Consolidated metadata", ZarrUserWarning)
        yield


class _OpensStores(ZarrIO):  # type: ignore[misc] # hdmf has no types
    """Open stores where hdmf-zarr opens paths, and keep the rows of tables complete."""

    _guarded: Sequence[StoredRows] = ()  # of the tables that were read

    def _open_store(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Replace the path in the arguments of a constructor by an opened store."""
        path, mode = arguments["path"], arguments["mode"]
        require(mode in _MODES, f"mode: expected one of {_MODES}, got {mode!r}", where=str(path))
        # reopened: a store remembers earlier writes
        store = _store(path, arguments["storage_options"]).reopened()
        root = getattr(store, "root", None)
        if root is not None:
            if mode == "w" and arguments.get("force_overwrite") and root.is_file():
                remove(root)  # zarr removes the members of a container, but no file in its place
            _check_root(root, mode)
        elif mode in ("r", "r-"):
            store = store.with_read_only(read_only=True)  # that hdmf-zarr makes no copy
            _read_ahead(store)
        return arguments | {"path": store, "storage_options": None}

    @property
    def source(self) -> str:
        """Return the path or URL of the container; hdmf would turn a URL into a path."""
        return str(self.path)

    @staticmethod
    def _resolve_store(
        store: str | Path | Store, storage_options: dict[str, Any] | None = None
    ) -> Store | str:
        """Open the container at a path; return the path of plain Zarr, which links may lead to."""
        if not isinstance(store, Store) and not is_url(store) and _is_zarr(Path(store)):
            return str(store)
        return _store(store, storage_options)

    def _open_file(
        self, store: str | Path | Store, mode: str, storage_options: dict[str, Any] | None = None
    ) -> zarr.Group:
        resolved = self._resolve_store(store, storage_options)
        if mode in ("w-", "x"):
            if not isinstance(resolved, Store) or not sync(resolved.is_empty("")):
                raise FileExistsError(f"{resolved} exists; mode 'w' replaces it")
            mode = "w"
        return zarr.open_group(resolved, mode=mode)  # type: ignore[arg-type]

    def resolve_ref(self, zarr_ref: object) -> tuple[str, object]:
        """Return the target of a link or reference; see :meth:`hdmf_zarr.ZarrIO.resolve_ref`.

        Raises
        ------
        N5UnsupportedError
            A link from a container on a server to another container (``kind="path"``).
        """
        source = zarr_ref.get("source") if isinstance(zarr_ref, dict) else "."
        if source not in (".", None) and not hasattr(self.path, "root"):
            raise N5UnsupportedError(
                f"link to {source!r}: links between containers are followed for local ones only",
                kind="path",
                where=str(self.path),
            )
        try:
            return super().resolve_ref(zarr_ref)  # type: ignore[no-any-return]
        except FileNotFoundError as err:
            err.add_note(f"linked from {self.source}, as {source!r}")
            raise

    def read(self, **kwargs: object) -> Any:
        """Read a container; see :meth:`hdmf_zarr.ZarrIO.read`."""
        with asking_once(), advising(self.source):
            container = super().read(**kwargs)
        if self.mode in _CHANGES:
            self._guarded = [*map(StoredRows, tables_in(container))]
        return container

    def close(self) -> None:
        """Close the container; see :meth:`hdmf_zarr.ZarrIO.close`."""
        for rows in self._guarded:
            rows.settle()
        super().close()

    @not_warned_of_consolidation()
    def write(self, *args: Any, **kwargs: Any) -> None:
        """Write a container; see :meth:`hdmf_zarr.ZarrIO.write`.

        If this fails in the modes ``"r+"`` and ``"a"``, the container is as it was, and closed.
        """
        for table in tables_in(args[0] if args else kwargs["container"]):
            check_rows(table, self.source)
        if self.mode not in _CHANGES:
            with ending():
                super().write(*args, **kwargs)
            return
        try:
            with undoing(self.path), asking_once(), ending():
                super().write(*args, **kwargs)
        except BaseException as err:
            err.add_note(f"{self.source}: nothing of this write is kept; open it again")
            self.close()  # hdmf would take for written what is undone
            raise

    @ending()
    @not_warned_of_consolidation()
    def export(self, *args: object, **kwargs: object) -> None:
        """Write what another IO object has read; see :meth:`hdmf_zarr.ZarrIO.export`."""
        super().export(*args, **kwargs)

    @docval(*get_docval(ZarrIO.write_attributes))  # type: ignore[untyped-decorator]
    def write_attributes(self, **kwargs: Any) -> None:
        """Write attributes of a group or array; see :meth:`hdmf_zarr.ZarrIO.write_attributes`."""
        # hdmf-zarr rewrites the document for each attribute: let it do so in memory
        in_memory = zarr.create_group({})
        super().write_attributes(**(kwargs | {"obj": in_memory}))
        if attributes := in_memory.attrs.asdict():
            kwargs["obj"].update_attributes(attributes)

    @docval(*get_docval(ZarrIO.write_builder))  # type: ignore[untyped-decorator]
    def write_builder(self, **kwargs: Any) -> None:
        """Write a builder; see :meth:`hdmf_zarr.ZarrIO.write_builder`."""
        self._write_through_store()
        super().write_builder(**kwargs)
        for link in kwargs["builder"].links.values():  # links of the root, which hdmf-zarr omits
            self.write_link(self._file, link, kwargs["export_source"])

    def _write_through_store(self) -> None:
        """Replace the queue, still empty, by one whose processes open the store, not its path."""
        queue, store = getattr(self, _QUEUE), self.path
        options = {} if queue is None else {name: getattr(queue, name) for name in _OPTIONS}
        if options.get("number_of_jobs", 1) > 1 and not store.storage.is_shared:
            message = f"{store}: written by one process: other processes would not see its keys"
            warnings.warn(message, N5Warning, stacklevel=4)
            options["number_of_jobs"] = 1
        queue = ZarrIODataChunkIteratorQueue(**options)
        # pickled for each process, and called there
        queue._write_buffer_zarr = partial(_write_buffer, store)  # noqa: SLF001 - see the module
        setattr(self, _QUEUE, queue)


def _write_buffer(
    store: N5Store, worker_context: dict[str, object], _path: str, *rest: object
) -> None:
    ZarrIODataChunkIteratorQueue._write_buffer_zarr(worker_context, store, *rest)  # noqa: SLF001


class N5IO(_OpensStores):
    """Read and write HDMF data in an N5 container, as :class:`hdmf_zarr.ZarrIO` does in Zarr.

    Parameters
    ----------
    path : str, Path or zarr store
        The container, as :class:`~n5zarr.N5Store` takes it.
    mode : {"r", "r-", "r+", "a", "w", "w-", "x"}
        ``"r-"`` reads without consolidated metadata; ``"w-"`` and ``"x"`` fail if the container
        exists.
    manager, storage_options, force_overwrite : optional
        As for :class:`hdmf_zarr.ZarrIO`; containers on servers can be written too.

    Raises
    ------
    FileNotFoundError
        The container does not exist, and the mode only reads.
    N5UnrepresentableError
        A file or a Zarr hierarchy is at this path, and the mode does not replace it
        (``kind="path"``).
    """

    @docval(*get_docval(ZarrIO.__init__))  # type: ignore[untyped-decorator]
    def __init__(self, **kwargs: Any) -> None:
        with asking_once(), advising(kwargs["path"]):
            super().__init__(**self._open_store(kwargs))

    @staticmethod
    @override
    def can_read(path: str | Path | Store) -> bool:
        """Return whether this is an N5 container with a document at its root."""
        return _root_of(path) is not None


class NWBN5IO(_OpensStores, NWBZarrIO):  # type: ignore[misc] # hdmf has no types
    """Read and write NWB in an N5 container, as :class:`hdmf_zarr.NWBZarrIO` does in Zarr.

    Parameters
    ----------
    path : str, Path or zarr store
        The container, as :class:`~n5zarr.N5Store` takes it.
    mode : {"r", "r-", "r+", "a", "w", "w-", "x"}
        ``"r-"`` reads without consolidated metadata; ``"w-"`` and ``"x"`` fail if the container
        exists.
    manager, storage_options, force_overwrite, load_namespaces : optional
        As for :class:`hdmf_zarr.NWBZarrIO`; containers on servers can be written too.

    Raises
    ------
    FileNotFoundError
        The container does not exist, and the mode only reads.
    N5UnrepresentableError
        A file or a Zarr hierarchy is at this path, and the mode does not replace it
        (``kind="path"``).

    Examples
    --------
    >>> from n5zarr.hdmf import NWBN5IO
    >>> with NWBN5IO("session.n5", mode="r") as io:  # doctest: +SKIP
    ...     nwbfile = io.read()
    """

    @docval(*get_docval(NWBZarrIO.__init__))  # type: ignore[untyped-decorator]
    def __init__(self, **kwargs: Any) -> None:
        with asking_once(), advising(kwargs["path"]):
            kwargs = self._open_store(kwargs)
            if kwargs["mode"] == "a" and _root_of(kwargs["path"]) is None:
                kwargs["load_namespaces"] = False  # the container does not exist yet
            super().__init__(**kwargs)

    @staticmethod
    @override
    def can_read(path: str | Path | Store) -> bool:
        """Return whether this is an N5 container with an NWB file in it."""
        root = _root_of(path)
        return root is not None and "nwb_version" in root.attrs

    @staticmethod
    @override
    def read_nwb(path: str | Path | Store) -> NWBFile:
        """Read an NWB file.

        Parameters
        ----------
        path : str, Path or zarr store
            The container; one on S3 is read without credentials.

        Returns
        -------
        pynwb.NWBFile
            Its ``read_io`` is the open :class:`NWBN5IO`.
        """
        is_s3 = isinstance(path, str) and path.startswith("s3://")
        options = {"anon": True} if is_s3 else None
        return NWBN5IO(path, mode="r", storage_options=options).read()


class N5PathStore(N5Store):
    """Open a local container as :class:`~n5zarr.N5Store`, and pass as a path to ``os.path``.

    For code of HDMF that calls ``os.path.exists(store)``, as hdmf-zarr's own tests do. Pass it to
    hdmf and hdmf-zarr only: xarray and dask would replace it by its path, and read or write plain
    Zarr there.

    Parameters
    ----------
    store, **options
        As for :class:`~n5zarr.N5Store`; the container must be a local one.
    """

    def __fspath__(self) -> str:
        return os.fspath(self.root)


def _store(path: str | Path | Store, storage_options: dict[str, Any] | None) -> N5Store:
    if isinstance(path, N5Store):
        return path
    return N5Store(path, storage_options=storage_options)


def _read_ahead(store: N5Store) -> None:
    """Read the documents of a container on a server, many at once; zarr lists group after group."""
    for found in walk(store, ""):
        if isinstance(found.node, DatasetView):  # its blocks are read without another look
            store.container.memory.keep(found.path, found.node)


def _root_of(path: str | Path | Store) -> zarr.Group | None:
    """Open the root group of a container; None if there is no N5 container."""
    try:
        store = _store(path, None)
        if hasattr(store, "root") and _is_zarr(store.root):
            return None
        if not sync(store.store.exists(ATTRIBUTES_JSON)):
            return None
        return zarr.open_group(store, mode="r")
    except Exception:  # can_read answers False for anything that fails
        return None


def _is_zarr(path: Path) -> bool:
    return any((path / name).is_file() for name in _ZARR)


def _check_root(path: Path, mode: str) -> None:
    if mode in ("r", "r-", "r+") and not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    if path.is_file():
        way_out = ", or force_overwrite=True to replace it" if mode == "w" else ""
        other = f"zip://::{path}" if is_zipfile(path) else "pynwb.NWBHDF5IO for HDF5"
        message = f"expected the directory of an N5 container, got a file; use {other}{way_out}"
        raise N5UnrepresentableError(message, kind="path", where=str(path))
    require(
        mode not in ("r", "r-", "r+", "a") or not _is_zarr(path),
        "expected an N5 container, got a Zarr hierarchy; use hdmf_zarr.NWBZarrIO",
        str(path),
        kind="path",
    )
