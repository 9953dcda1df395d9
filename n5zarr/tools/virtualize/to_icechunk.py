"""Write references as virtual chunks of Icechunk: one commit to a repository.

Documentation: https://icechunk.io/en/stable/virtual/. A reader has to allow the repository to read
the container: ``authorize_virtual_chunk_access`` of ``icechunk.Repository.open``. Documents are
written unchanged: VirtualiZarr would pass them through xarray, which changes attributes.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from zarr.buffer import cpu

from n5zarr._zarr import sync
from n5zarr.container.options import require
from n5zarr.errors import N5UnsupportedError
from n5zarr.format.path import join
from n5zarr.format.raw_json import as_java
from n5zarr.storage.secrets import named
from n5zarr.storage.url import is_url, local_path
from n5zarr.tools.optional import import_optional
from n5zarr.tools.virtualize.layout import VirtualCoordinate, chunk_key
from n5zarr.tools.virtualize.places import plain_prefix, scheme_of, url_of_block

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    from n5zarr.tools.virtualize.layout import Member, VirtualArray
    from n5zarr.tools.virtualize.references import Chunk

__all__ = ["IcechunkWriter"]


class IcechunkWriter:
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
        self._icechunk = icechunk = import_optional("icechunk", "Icechunk", "virtual")
        self._container, self._message = container, message
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
                f"{out}: expected no repository, or an empty one; overwrite=True (--overwrite) "
                "adds a commit that replaces its content",
            )
            config = before.config  # earlier commits refer to containers of their own
        config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(prefix, place))
        repository = icechunk.Repository.open_or_create(storage, config=config)
        repository.save_config()
        self._session = repository.writable_session("main")
        self._target: Any = self._session.store
        sync(self._target.clear())

    def add(self, member: Member) -> None:
        """Add the documents of a member, and the chunk of a coordinate."""
        for name, document in member.documents(3).items():
            self._set(join(member.path, name), json.dumps(as_java(document)).encode())
        if isinstance(member, VirtualCoordinate) and member.chunk is not None:
            self._set(chunk_key(member.path, (0,), 3), member.chunk)

    def refer(self, array: VirtualArray, chunks: Sequence[Chunk]) -> None:
        """Add chunks of an array that has been added."""
        specs = []
        for chunk in chunks:
            if chunk.data is not None:
                self._set(chunk_key(array.path, chunk.coords, 3), chunk.data)
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

    def _set(self, key: str, value: bytes) -> None:
        try:
            sync(self._target.set(key, cpu.Buffer.from_bytes(value)))
        except self._icechunk.InvalidInputError as err:
            raise N5UnsupportedError(
                f"{key}: icechunk does not take it: {str(err).partition(chr(10))[0]}", kind="option"
            ) from err

    def finish(self) -> None:
        """Make the commit."""
        self._session.commit(self._message)

    def close(self) -> None:
        """Discard uncommitted changes."""


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
