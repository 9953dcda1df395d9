"""The stores and the codec of ``zarr.n5``."""

from __future__ import annotations

from typing import Any

import numcodecs.registry

from n5zarr.codecs.compress import zarr_to_compression
from n5zarr.errors import option_error
from n5zarr.format.compression import compression_to_json
from n5zarr.store.block_codec import N5Block
from n5zarr.store.n5_fs_store import N5FSStore as NewN5FSStore
from n5zarr.store.n5_store import N5Store as NewN5Store

_FAST: dict[str, Any] = {"codecs": "n5", "zarr_format": 3}


class N5Store(NewN5Store):
    """An :class:`n5zarr.N5Store`, whose arrays have the fast path.

    Parameters
    ----------
    path : path
        The container.
    normalize_keys : optional
        Without effect.
    **options : optional
        Those of :class:`n5zarr.N5Store`.
    """

    def __init__(self, path: Any, normalize_keys: object = False, **options: Any) -> None:
        super().__init__(path, **_FAST | options)


class N5FSStore(NewN5FSStore):
    """An :class:`n5zarr.N5FSStore`, whose arrays have the fast path.

    Parameters
    ----------
    url : path or URL
        The container.
    normalize_keys : optional
        Without effect, unless it is a mode: programs give one in second place.
    mode : str, optional
        ``"r"`` refuses to write.
    exceptions : optional
        Without effect.
    **options : optional
        Those of :class:`n5zarr.N5FSStore`.
    """

    def __init__(
        self,
        url: Any,
        normalize_keys: object = False,
        mode: Any = "w",
        exceptions: object = None,
        **options: Any,
    ) -> None:
        options["mode"] = normalize_keys if isinstance(normalize_keys, str) else mode
        super().__init__(url, **_FAST | options)


def to_compression(compressor: Any) -> dict[str, Any]:
    """Return the ``compression`` of a dataset for a compressor of numcodecs; None is raw.

    Raises
    ------
    N5UnrepresentableError
        N5 has no such compression (``kind="option"``).

    Examples
    --------
    >>> to_compression(numcodecs.registry.get_codec({"id": "zlib", "level": 2}))
    {'type': 'gzip', 'useZlib': True, 'level': 2}
    """
    if compressor is None:
        return {"type": "raw"}
    config = compressor.get_config()
    found = zarr_to_compression(config["id"], config)
    if found is None:
        raise option_error(
            f"compressor: expected one that N5 has, such as numcodecs.GZip(), got {compressor}"
        )
    return compression_to_json(found)


class N5ChunkWrapper(N5Block):
    """An :class:`n5zarr.N5Block` with zarr 2's arguments; the ``compressor`` of arrays.

    Parameters
    ----------
    dtype : dtype
        Type of the elements.
    chunk_shape : iterable of int
        Shape of a block, C order.
    compressor_config : mapping, optional
        What ``compressor.get_config()`` returns; None for raw.
    compressor : numcodecs.abc.Codec, optional
        The compressor.
    """

    codec_id = "n5_wrapper"

    def __init__(
        self, dtype: Any, chunk_shape: Any, compressor_config: Any = None, compressor: Any = None
    ) -> None:
        config = dict(compressor_config or {})
        self.inner = numcodecs.registry.get_codec(config) if config else compressor  # type: ignore[no-untyped-call]
        self.compressor_config = self.inner and self.inner.get_config()
        super().__init__(dtype, chunk_shape, to_compression(self.inner))

    def get_config(self) -> dict[str, Any]:
        """Return the configuration, without type and shape."""
        return {"id": self.codec_id, "compressor_config": self.compressor_config}
