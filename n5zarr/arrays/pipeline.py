"""The name by which programs configure the pipeline of the room `fast`."""

from n5zarr.rooms import needed


def __getattr__(name: str) -> object:
    if name != "N5CodecPipeline":
        raise AttributeError(name)
    return needed("speed", "pipeline")
