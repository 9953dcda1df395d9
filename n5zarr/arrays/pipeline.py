"""The name by which programs configure the pipeline of the room `fast`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from n5zarr.rooms import Door

if TYPE_CHECKING:
    from zarr.abc.codec import CodecPipeline

_PIPELINE: Door[type[CodecPipeline]] = Door("speed", "pipeline")


def __getattr__(name: str) -> object:
    if name != "N5CodecPipeline":
        raise AttributeError(name)
    return _PIPELINE.needed()
