"""Write references: kerchunk's in one JSON file, or a commit to Icechunk.

Kerchunk's specification: https://fsspec.github.io/kerchunk/spec.html, version 1. fsspec's reference
file system reads both forms. JSON is written here: VirtualiZarr writes one xarray Dataset, so no
groups and no chunks at the end of axes that are smaller. :mod:`n5zarr.tools.virtualize.parquet`
writes Parquet.

Icechunk's documentation: https://icechunk.io/en/stable/virtual/. A reader has to allow the
repository to read the container: ``authorize_virtual_chunk_access`` of
``icechunk.Repository.open``. Documents are written unchanged: VirtualiZarr would pass them through
xarray, which changes attributes.
"""

from __future__ import annotations

import base64
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, override
from urllib.parse import quote, urlsplit

from zarr.buffer import cpu

from n5zarr._zarr import sync
from n5zarr.container.options import require
from n5zarr.errors import N5UnsupportedError, import_optional
from n5zarr.format.path import join
from n5zarr.storage.opening import OPEN_URL
from n5zarr.storage.place import Place
from n5zarr.storage.secrets import named
from n5zarr.storage.url import is_url, local_path
from n5zarr.tools.virtualize.layout import VirtualArray, VirtualCoordinate, VirtualMember
from n5zarr.tools.virtualize.references import Chunk, plain_prefix, scheme_of, url_of_block
from n5zarr.zarr_view.keys import DEFAULT_NAMES, ZarrFormat


class Writer:
    """Turn members and chunks into references, which subclasses store.

    Parameters
    ----------
    container : str
        URL of the container.
    zarr_format : {3, 2}
        Format of the hierarchy.
    """

    def __init__(self, container: str, zarr_format: ZarrFormat) -> None:
        self._container = container
        self._zarr_format, self._names = zarr_format, DEFAULT_NAMES[zarr_format]

    def keep(self, key: str, value: str | bytes | list[str | int]) -> None:
        """Keep a document, the bytes of a chunk, or URL, offset and length."""
        raise NotImplementedError

    def add(self, member: VirtualMember) -> None:
        """Add the documents of a member, and the chunk of a coordinate."""
        for name, document in member.documents(self._zarr_format).items():
            self.keep(join(member.path, name), json.dumps(document))
        if isinstance(member, VirtualCoordinate) and member.chunk is not None:
            self.keep(self._names.key(member.path, (0,)), member.chunk)

    def refer(self, array: VirtualArray, chunks: Sequence[Chunk]) -> None:
        """Add chunks of an array that has been added."""
        for chunk in chunks:
            key = self._names.key(array.path, chunk.coords)
            url = url_of_block(self._container, chunk.key)
            self.keep(key, [url, chunk.offset, chunk.length] if chunk.data is None else chunk.data)

    def finish(self) -> None:
        """Complete what is kept."""

    def close(self) -> None:
        """Remove incomplete files; others form no arrays before the end, and may stay."""


class JsonWriter(Writer):
    """Write one JSON file, which appears when it is complete.

    Parameters
    ----------
    container : str
        URL of the container.
    zarr_format : {3, 2}
        Format of the hierarchy.
    out : str
        Path or URL of the file.
    options : mapping or None
        Options of fsspec, for a URL.
    """

    def __init__(
        self,
        container: str,
        zarr_format: ZarrFormat,
        out: str,
        options: Mapping[str, object] | None,
    ) -> None:
        super().__init__(container, zarr_format)
        self._out, self._options = out, options
        self._is_url = is_url(out)
        path = None if self._is_url else Path(local_path(out)).absolute()
        folder = None if path is None else path.parent
        if folder is not None and not folder.is_dir():
            raise FileNotFoundError(f"{folder}: expected a directory, to put {out} there")
        suffix = ".json" if path is None else f"{path.name}.partial"
        number, self._partial = tempfile.mkstemp(dir=folder, prefix=".", suffix=suffix)
        self._file = os.fdopen(number, "w", encoding="utf-8")
        self._file.write('{"version": 1, "refs": {')
        self._separator = "\n"

    @override
    def keep(self, key: str, value: str | bytes | list[str | int]) -> None:
        if isinstance(value, bytes):
            value = f"base64:{base64.b64encode(value).decode()}"
        self._file.write(f"{self._separator}{json.dumps(key)}: {json.dumps(value)}")
        self._separator = ",\n"

    @override
    def finish(self) -> None:
        self._file.write("\n}}\n")
        self._file.close()
        if not self._is_url:
            mask = os.umask(0)
            os.umask(mask)
            Path(self._partial).chmod(0o666 & ~mask)  # temporary files are private
            Path(self._partial).replace(local_path(self._out))
            return
        folder, _, name = self._out.rpartition("/")
        there = Place(folder, "", self._options, "fsspec")
        store, _ = OPEN_URL.needed()(there, read_only=False, forbidden_is_missing=False)
        sync(store.set(name, cpu.Buffer.from_bytes(Path(self._partial).read_bytes())))
        self.close()

    @override
    def close(self) -> None:
        try:
            self._file.close()  # the remaining data may not fit on the disk
        finally:
            Path(self._partial).unlink(missing_ok=True)


class IcechunkWriter(Writer):
    """The branch ``main`` of a repository; one commit replaces its content.

    Parameters
    ----------
    container : str
        URL of the container.
    source_options : mapping or None
        fsspec's options for the container: region and endpoint are kept in the repository.
    out : str
        Path or URL of the repository.
    options : mapping or None
        For Icechunk's storage of a URL, such as ``region`` or ``endpoint_url``.
    message : str
        Message of the commit.
    overwrite : bool
        Whether a repository that holds something gets another commit.
    """

    def __init__(
        self,
        container: str,
        source_options: Mapping[str, object] | None,
        out: str,
        options: Mapping[str, object] | None,
        *,
        message: str,
        overwrite: bool,
    ) -> None:
        super().__init__(container, 3)
        self._icechunk = icechunk = import_optional("icechunk", "Icechunk", "virtual")
        self._message = message
        self._time = datetime.now(UTC) + timedelta(seconds=1)  # it keeps whole seconds
        prefix = plain_prefix(container)
        place = _virtual_store(icechunk, prefix, source_options or {})
        storage = _storage(icechunk, out, options or {})
        config = icechunk.RepositoryConfig.default()
        if icechunk.Repository.exists(storage):
            before = icechunk.Repository.open(storage)
            store = before.readonly_session("main").store
            require(
                overwrite or sync(store.is_empty("")),
                f"{named(out)}: expected no repository, or an empty one; overwrite=True "
                "(--overwrite) adds a commit that replaces its content",
            )
            config = before.config  # earlier commits refer to containers of their own
        config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(prefix, place))
        repository = icechunk.Repository.open_or_create(storage, config=config)
        repository.save_config()
        self._session = repository.writable_session("main")
        self._target: Any = self._session.store
        sync(self._target.clear())

    @override
    def refer(self, array: VirtualArray, chunks: Sequence[Chunk]) -> None:
        specs = []
        for chunk in chunks:
            if chunk.data is not None:
                self.keep(self._names.key(array.path, chunk.coords), chunk.data)
                continue
            spec = self._icechunk.VirtualChunkSpec(
                index=list(chunk.coords),
                location=_quoted(url_of_block(self._container, chunk.key)),
                offset=chunk.offset,
                length=chunk.length,
                last_updated_at_checksum=self._time,
            )
            specs.append(spec)
        refused = self._target.set_virtual_refs(array.path, specs) if specs else None
        if refused:
            raise N5UnsupportedError(
                f"{array.path}: icechunk takes no references to chunks {refused[:3]}", kind="option"
            )

    @override
    def keep(self, key: str, value: str | bytes | list[str | int]) -> None:
        data = value if isinstance(value, bytes) else str(value).encode()
        try:
            sync(self._target.set(key, cpu.Buffer.from_bytes(data)))
        except self._icechunk.InvalidInputError as err:
            raise N5UnsupportedError(
                f"{key}: icechunk does not take it: {str(err).partition(chr(10))[0]}", kind="option"
            ) from err

    @override
    def finish(self) -> None:
        self._session.commit(self._message)


def _quoted(url: str) -> str:
    """Quote the path of a URL; URLs of HTTP are quoted already."""
    scheme, separator, place = url.partition("://")
    return url if scheme in ("http", "https") else f"{scheme}{separator}{quote(place)}"


def _storage(icechunk: ModuleType, out: str, options: Mapping[str, object]) -> Any:  # noqa: ANN401 - icechunk exports no type for it
    """Open the storage of a repository."""
    scheme = scheme_of(out) if is_url(out) else ""
    parts = urlsplit(out)
    place: dict[str, object] = {"bucket": parts.netloc, "prefix": parts.path.strip("/")}
    match scheme:
        case "":
            require(
                not options,
                f"destination_options: expected none with a local path, got {sorted(options)}",
            )
            path = Path(local_path(out)).absolute()
            if path.is_file():
                raise FileExistsError(f"{out}: expected nothing or a repository, got a file")
            return icechunk.local_filesystem_storage(str(path))
        case "s3":
            return icechunk.s3_storage(**place, **options)
        case "gs" | "gcs":
            return icechunk.gcs_storage(**place, **options)
        case _:
            message = (
                f"{named(out)}: expected a local path, s3:// or gs:// for a repository of Icechunk"
            )
            raise N5UnsupportedError(message, kind="option")


def _virtual_store(icechunk: ModuleType, prefix: str, options: Mapping[str, object]) -> Any:  # noqa: ANN401 - icechunk exports no type for it
    """Make the store with which Icechunk reads blocks, from the options of fsspec."""
    client = options.get("client_kwargs")
    client = client if isinstance(client, dict) else {}
    match scheme_of(prefix):
        case "file":
            return icechunk.local_filesystem_store(prefix.removeprefix("file://"))
        case "s3":
            endpoint = options.get("endpoint_url") or client.get("endpoint_url")
            return icechunk.s3_store(
                region=client.get("region_name") or "us-east-1",
                endpoint_url=endpoint,
                allow_http=str(endpoint or "").startswith("http://"),
                anonymous=bool(options.get("anon", False)),
                s3_compatible=endpoint is not None,
                force_path_style=endpoint is not None,
            )
        case "gs":
            return icechunk.gcs_store()
        case "http" | "https":
            return icechunk.http_store()
        case scheme:
            raise N5UnsupportedError(
                f"{prefix}: expected a location that Icechunk reads, got {scheme}://", kind="option"
            )
