"""Opening a BigStitcher project of real size: seconds of CPU and growth of memory.

The views have 14192 x 10640 x 28672 elements in blocks of 128 x 128 x 64, and no stored block; the
number of blocks must not matter. Each way of opening runs in a process of its own, after one on a
project of one view.

``uv run --group bench python -m benchmarks.projects [--tiles N ...]``
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

import n5zarr

if TYPE_CHECKING:
    from collections.abc import Callable

SHAPE = (14192, 10640, 28672)  # N5 order, as all documents and XML
SETUP = (
    "<ViewSetup><id>{k}</id><name>tile {k}</name>"
    "<voxelSize><unit>um</unit><size>0.4 0.4 1</size></voxelSize></ViewSetup>"
)
MOVED = (
    '<ViewRegistration setup="{k}" timepoint="0"><ViewTransform type="affine">'
    "<affine>1 0 0 {x} 0 1 0 0 0 0 1 0</affine></ViewTransform></ViewRegistration>"
)
PROJECT = (
    '<SpimData><SequenceDescription><ImageLoader format="bdv.n5">'
    '<n5 type="relative">dataset.n5</n5></ImageLoader><ViewSetups>{setups}</ViewSetups>'
    "</SequenceDescription><ViewRegistrations>{moved}</ViewRegistrations></SpimData>"
)
WAYS: dict[str, Callable[[Path], Any]] = {
    "open_bdv": n5zarr.open_bdv,
    'open_datatree(engine="n5")': lambda xml: xr.open_datatree(xml, engine="n5"),
    "pyramid_levels of each": lambda xml: [
        n5zarr.pyramid_levels(xml.parent / "dataset.n5", f"{setup.name}/timepoint0")
        for setup in (xml.parent / "dataset.n5").glob("setup*")
    ],
}


def write(folder: Path, n: int) -> Path:
    """Write the documents and the XML of ``n`` tiles."""
    document = {
        "dimensions": SHAPE, "blockSize": [128, 128, 64], "dataType": "uint16",
        "compression": {"type": "raw"},
    }  # fmt: skip
    for k in range(n):
        level = folder / "dataset.n5" / f"setup{k}" / "timepoint0" / "s0"
        level.mkdir(parents=True)
        (level / "attributes.json").write_text(json.dumps(document))
    (folder / "dataset.n5" / "attributes.json").write_text('{"n5": "4.0.0"}')
    setups = "".join(SETUP.format(k=k) for k in range(n))
    moved = "".join(MOVED.format(k=k, x=k * SHAPE[0]) for k in range(n))
    (folder / "dataset.xml").write_text(PROJECT.format(setups=setups, moved=moved))
    return folder / "dataset.xml"


def measure(way: str, xml: Path, first: Path) -> tuple[float, float]:
    """Open a project; return seconds of CPU, and MB."""
    WAYS[way](first)  # imports
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    WAYS[way](xml)
    seconds = time.process_time() - start
    return seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiles", type=int, nargs="*", default=[10, 100])
    numbers = parser.parse_args().tiles
    with tempfile.TemporaryDirectory() as folder:
        first = write(Path(folder, "1"), 1)
        projects = {n: write(Path(folder, f"tiles{n}"), n) for n in numbers}
        print("| opened by | " + " | ".join(f"{n} tiles, s | MB" for n in numbers) + " |")
        print("|---" * (1 + 2 * len(numbers)) + "|")
        for way in WAYS:
            cells = []
            for xml in projects.values():
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    seconds, mb = pool.apply(measure, (way, xml, first))
                cells.append(f"{seconds:.2f} | {mb:.0f}")
            print(f"| {way} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
