"""Make n5zarr's pipeline zarr's default, when a program imports zarr.

zarr asks the class of pipelines that its configuration names for a pipeline for each array that it
opens. Importing n5zarr changes this name, as `docs/performance.md` says, or does so as soon as zarr
has been imported: zarr takes most of a second, which ``n5zarr --version`` does not need. Nothing of
n5zarr is imported then, as another thread may be importing it, and waiting for zarr.

The class itself, of :mod:`n5zarr.fast.pipeline`, comes with the first ``N5Store``. Until then, the
name stands for zarr's own pipeline.
"""

from __future__ import annotations

import os
import sys
from copy import copy
from importlib import import_module
from typing import Any

_MODULE, _CLASS = "n5zarr.arrays.pipeline", "N5CodecPipeline"  # as programs configure it


def default_pipeline_name() -> str:
    """Return the name of zarr's own default pipeline, whatever is configured."""
    config = import_module("zarr").config
    # a list of mappings; a mapping if zarr types its configuration, as pull request 4101 proposes
    defaults: Any = getattr(config, "defaults", {})
    known = defaults[0] if isinstance(defaults, list) else defaults
    return str((known.get("codec_pipeline") or config.get("codec_pipeline"))["path"])


def default_pipeline() -> Any:  # noqa: ANN401 - a class of zarr, which is not imported here
    """Return zarr's own default pipeline, whatever is configured."""
    module, _, name = default_pipeline_name().rpartition(".")
    return getattr(import_module(module), name)


def make_default() -> None:
    """Make the pipeline zarr's default, now or when zarr comes, unless another is configured."""
    if "zarr" in sys.modules:
        _configure()
    else:
        sys.meta_path.insert(0, _UntilZarrComes())


def _configure() -> None:
    zarrs, config = default_pipeline(), import_module("zarr").config
    if "n5zarr.fast.pipeline" not in sys.modules:
        members = {
            "__module__": _MODULE,
            "from_codecs": zarrs.from_codecs,  # makes a pipeline of zarr's class
            "from_array_metadata_and_store": zarrs.from_array_metadata_and_store,
        }
        import_module("zarr.registry").register_pipeline(type(_CLASS, (zarrs,), members))
    is_default = config.get("codec_pipeline.path") == default_pipeline_name()
    if is_default and os.environ.get("N5ZARR_PIPELINE", "1") != "0":
        config.set({"codec_pipeline.path": f"{_MODULE}.{_CLASS}"})


class _UntilZarrComes:
    """Finds zarr as the other finders do, and configures it when it has been imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ANN401
        if name != "zarr":
            return None
        others: Any = (each for each in sys.meta_path if each is not self)
        spec = next(filter(None, (each.find_spec(name, path, target) for each in others)), None)
        if spec is not None:
            run, spec.loader = spec.loader.exec_module, copy(spec.loader)  # others may share it

            def exec_module(module: object) -> None:
                run(module)
                _configure()

            spec.loader.exec_module = exec_module
        return spec
