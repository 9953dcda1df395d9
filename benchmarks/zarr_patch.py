"""What a change of zarr would give: a key that is normal already is not normalised again.

Reads a volume of 384^3 uint8 in blocks of 32^3, raw, by a pipeline that returns at once, and by
n5zarr's, in turn with zarr as it is and with the change of ``docs/design/proposing-to-zarr.md``.

``uv run --group bench python -m benchmarks.zarr_patch [--rounds N]``
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import zarr

from benchmarks.__main__ import Case, markdown, read_all, shuffled, timed, volume
from benchmarks.cold import Nothing, selections, stored
from n5zarr import N5Store

_common: Any = import_module("zarr.storage._common")
normalised = _common.normalize_path  # of zarr


def changed(path: Any) -> str:
    """Return a text that is normal as it is, which takes few searches; else do as zarr does."""
    is_text = type(path) is str and "." not in path and "//" not in path and "\\" not in path
    return path if is_text and path == path.strip("/") else str(normalised(path))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    options = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        case, path = Case("uint8", 32, "raw"), Path(folder) / "a.n5"
        stored(path, case, volume("uint8", 384))
        plain: Any = zarr.open_array(N5Store(path), path="d", mode="r")
        with zarr.config.set({"codec_pipeline.path": f"{Nothing.__module__}.Nothing"}):
            nothing: Any = zarr.open_array(N5Store(path), path="d", mode="r")
        for task, wanted in selections(384).items():
            for what, array in (("nothing", nothing), ("plain", plain)):
                read = partial(read_all, array.__getitem__, wanted)
                ms: dict[Any, list[float]] = {normalised: [], changed: []}
                for function in shuffled(list(ms), options.rounds):
                    _common.normalize_path = function
                    ms[function].append(1000 * timed(read, 1))
                _common.normalize_path = normalised
                before, after = map(statistics.median, ms.values())
                lines.append((task, what, f"{before:.2f}", f"{after:.2f}", f"{after / before:.2f}"))
    print(markdown(("task", "pipeline", "zarr, ms", "changed, ms", "ratio"), lines))


if __name__ == "__main__":
    main()
