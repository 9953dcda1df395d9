"""The only place that names private parts of zarr.

- ``sync``: zarr 3.4 has no public way to run a coroutine on its event loop, to which the clients
  of remote stores are bound. Drop it when there is one.
- The types stand in the signatures of codecs; zarr exports them nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zarr.core.sync import sync

if TYPE_CHECKING:
    from zarr.core import array_spec, indexing
    from zarr.core.dtype import wrapper
    from zarr.core.metadata import v3

    type ArraySpec = array_spec.ArraySpec
    type ChunkGridMetadata = v3.ChunkGridMetadata
    type SelectorTuple = indexing.SelectorTuple
    type ZDType = wrapper.ZDType[wrapper.TBaseDType, wrapper.TBaseScalar]

__all__ = ["sync"]
