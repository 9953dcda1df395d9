"""What ``|n5:`` means in zarr's URL pipelines: ``zarr.open("s3://bucket/a.n5|n5:em/s0")``.

Zarr has none yet: this is the interface that pull request 4192 of zarr-python proposes. Its entry
point, in the group ``zarr.url_adapters``, is loaded by nothing until zarr looks there.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

from zarr.storage import StorePath

from n5zarr.errors import option_error
from n5zarr.format.path import join, normalize_path
from n5zarr.storage.place import place_of
from n5zarr.store.location import root_of
from n5zarr.store.n5_store import N5Store

try:
    _ADAPTER: Any = import_module("zarr.abc.url_pipeline").URLPipelineAdapter
except (ImportError, AttributeError):  # zarr has none yet
    _ADAPTER = object


class N5UrlAdapter(_ADAPTER):  # type: ignore[misc] # has no type as long as zarr has none
    """Opens what is left of ``|n5:`` as an N5 container; the text behind it is the path of a node.

    Zarr itself opens the left part, with the mode and the storage options of the call.
    """

    @classmethod
    async def open_pipeline_segment(cls, segment: Any, context: Any) -> Any:  # noqa: ANN401 - zarr's types
        """Open the container, and say which node is meant.

        Parameters
        ----------
        segment : zarr.abc.url_pipeline.PipelineSegment
            ``n5:`` and what follows it.
        context : zarr.abc.url_pipeline.PipelineContext
            What is to the left, with the mode of the call.

        Returns
        -------
        zarr.abc.url_pipeline.AdapterResolution
            The store, open, and the path of the node in it.

        Raises
        ------
        N5UnrepresentableError
            There is a query behind the path (``kind="option"``).
        """
        if segment.query is not None:
            raise option_error(f"location: expected no query behind '|n5:', got {segment.raw!r}")
        left = await context.resolve_preceding()
        root = root_of(place_of(StorePath(left.store, left.path)))
        store = await N5Store.open(
            replace(root, path=""), read_only=context.read_only or left.store.read_only
        )
        path = join(normalize_path(root.path), normalize_path(segment.body))
        return replace(left, store=store, path=path)
