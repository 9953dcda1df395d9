"""What both forms of n5zarr's way to zarr need; made of public names."""

from __future__ import annotations

import asyncio
import os
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import zarr

from n5zarr.errors import N5UnrepresentableError

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from zarr.abc.codec import CodecPipeline, GetResult

__all__ = [
    "MISSING",
    "PRESENT",
    "REFUSALS",
    "default_pipeline",
    "default_pipeline_name",
    "filtered_dtype",
    "on_own_loop",
]

PRESENT: GetResult = {"status": "present"}
MISSING: GetResult = {"status": "missing"}

REFUSALS = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, SyntaxError, TypeError,
    ValueError,
)  # fmt: skip
"""The errors of zarr, numcodecs and numpy for invalid documents."""


def default_pipeline_name() -> str:
    """Return the name of zarr's own default pipeline, whatever is configured."""
    # a list of mappings; a mapping if zarr types its configuration, as pull request 4101 proposes
    defaults: Any = getattr(zarr.config, "defaults", {})
    known = defaults[0] if isinstance(defaults, list) else defaults
    configured = known.get("codec_pipeline") or zarr.config.get("codec_pipeline")
    return str(configured["path"])


def default_pipeline() -> type[CodecPipeline]:
    """Return zarr's own default pipeline, whatever is configured."""
    module, _, name = default_pipeline_name().rpartition(".")
    pipeline: type[CodecPipeline] = getattr(import_module(module), name)
    return pipeline


class _Loop:
    """An event loop of n5zarr's own, for codecs that only exist as coroutines.

    Zarr's loop would deadlock: it may be waiting for the store that decodes here.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def get(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, daemon=True).start()
            return self._loop

    def forget(self) -> None:
        """Drop the loop in a forked process, which does not have its thread."""
        self._lock, self._loop = threading.RLock(), None


_LOOP = _Loop()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LOOP.forget)


def on_own_loop[T](coroutine: Coroutine[object, object, T]) -> T:
    """Run a coroutine on n5zarr's own event loop, and wait for the result."""
    return asyncio.run_coroutine_threadsafe(coroutine, _LOOP.get()).result()


class _Codecs(Protocol):
    def encode(self, array: np.ndarray) -> bytes: ...
    def decode(self, chunk: bytes) -> np.ndarray: ...


def filtered_dtype(
    codecs: _Codecs, document: dict[str, Any], zeros: np.ndarray
) -> np.dtype[Any] | None:
    """Return the type, with its byte order, that the filters of an array expect; None without any.

    A filter reads the bytes of a chunk as numbers, in a byte order that only zarr knows.

    Raises
    ------
    N5UnrepresentableError
        Zarr does not decode the filters as it encoded them (``kind="compression"``).
    """
    is_filtered = "numcodecs." in str(document) or bool(document.get("filters"))
    if not is_filtered or zeros.dtype.kind not in "biufc":
        return None
    dtype = codecs.decode(codecs.encode(zeros)).dtype
    small = np.arange(251, dtype=np.uint8)
    probes: list[np.ndarray] = [np.resize(small, zeros.shape).astype(dtype)]
    if dtype.kind in "iu":  # sums without a carry are right in either byte order
        numbers = np.resize(small * 89, zeros.nbytes)
        probes.append(numbers.view(dtype).reshape(zeros.shape))
    for values in probes:
        # values that were decoded once; the first ones need not survive, as some filters are lossy
        once = codecs.decode(codecs.encode(values))
        again = codecs.decode(codecs.encode(once.astype(dtype)))
        if not np.array_equal(again, once, equal_nan=once.dtype.kind in "fc"):
            message = (
                "filters: expected to decode to the values that were encoded, got others (zarr "
                "misreads big-endian filters of Zarr v3); create the array with '<' in its type"
            )
            raise N5UnrepresentableError(message, kind="compression")
    return dtype
