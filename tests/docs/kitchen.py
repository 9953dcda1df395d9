"""What the recipes of the cookbook begin with: small files, most of them of other programs."""

from __future__ import annotations

import os
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
import tensorstore
import tifffile
import zarr
from yaozarrs import validate_zarr_store

import n5zarr
from tests.contract.bigstitcher import write_project
from tests.shards import write_shards

if TYPE_CHECKING:
    from collections.abc import Callable

SHAPE = (37, 53, 67)  # z, y, x
LOST = "em/s0/1/1/1"
DOCUMENT = {"dimensions": SHAPE[::-1], "blockSize": [32, 24, 16], "dataType": "uint16"}


def volume(seed: int = 0, shape: tuple[int, ...] = SHAPE) -> Any:
    return np.random.default_rng(seed).integers(0, 999, shape, "uint16")


def opened(path: str, driver: str = "n5", **members: Any) -> Any:
    """Open or create a dataset with tensorstore, x first."""
    place = {"driver": "file", "path": str(Path(path).absolute())}
    return tensorstore.open({"driver": driver, "kvstore": place, **members}).result()


def read(path: str) -> Any:
    """Read a dataset of N5 with tensorstore, z first."""
    return opened(path).read().result().T


def _single() -> None:
    axes = {"axes": ["x", "y", "z"], "units": ["nm"] * 3, "resolution": [4.0, 4.0, 40.0]}
    metadata = {**DOCUMENT, "compression": {"type": "gzip"}, **axes}
    opened("single.n5/vol", metadata=metadata, create=True).write(volume().T).result()


def _sample(name: str) -> None:
    shutil.copytree(n5zarr.sample_path(), name)


def _slices() -> None:
    Path("slices").mkdir()
    for z, plane in enumerate(volume()):
        tifffile.imwrite(f"slices/{z:03}.tif", plane)


def _tiles() -> None:
    for n in range(2):
        tifffile.imwrite(f"tile{n}.tif", volume(n), photometric="minisblack")


def _stack() -> None:
    tifffile.imwrite("stack.tif", volume(), photometric="minisblack")


def _scan() -> None:
    with h5py.File("scan.h5", "w") as file:
        raw = file.create_dataset("volumes/raw", data=volume(), chunks=(16, 24, 32))
        raw.attrs["element_size_um"] = [0.04, 0.004, 0.004]  # of ilastik


def _scans() -> None:
    Path("scans").mkdir()
    for n in range(2):
        with h5py.File(f"scans/day{n}.h5", "w") as file:
            file.create_dataset("raw", data=volume(n), chunks=(16, 24, 32))


def _cells() -> None:
    mrc = pytest.importorskip("mrc", reason="peer: uv sync installs it")
    mrc.imsave("cells.dv", volume(0, (5, 53, 67)), metadata={"dx": 0.2, "dy": 0.3, "dz": 1.5})


def _session() -> None:
    from pynwb import NWBHDF5IO, NWBFile, TimeSeries  # noqa: PLC0415 - takes seconds

    begin = datetime(2026, 11, 23, tzinfo=UTC)
    file = NWBFile("a session", "session-1", begin)
    file.add_acquisition(TimeSeries(name="raw", data=volume()[:, :3, 0], unit="V", rate=1000.0))
    with NWBHDF5IO("session.nwb", "w") as io:
        io.write(file)


def _cut_session() -> None:
    from hdmf_zarr import NWBZarrIO  # noqa: PLC0415 - takes seconds
    from pynwb import NWBFile  # noqa: PLC0415

    from n5zarr.hdmf import NWBN5IO  # noqa: PLC0415

    file = NWBFile("a session", "session-1", datetime(2026, 11, 23, tzinfo=UTC))
    file.add_trial(start_time=0.0, stop_time=1.0, tags=["a"])
    file.add_trial(start_time=1.0, stop_time=2.0, tags=["b", "c"])
    with NWBN5IO("cut.n5", mode="w") as io:
        io.write(file)
    with NWBZarrIO(n5zarr.N5Store("cut.n5"), mode="r+") as io, pytest.raises(ValueError):  # noqa: PT011
        io.read().add_trial(start_time=2.0, stop_time=3.0, tags=["d"])


def _image() -> None:
    root = zarr.create_group("image.zarr", zarr_format=2)
    root.create_array("em", shape=SHAPE, chunks=(16, 24, 32), dtype="uint16")[:] = volume()


def _ome() -> None:
    """Write an image by the specification of OME-Zarr 0.5."""
    root = zarr.create_group("image.ome.zarr", zarr_format=3)
    how: Any = {"chunks": (16, 24, 32), "dimension_names": ("z", "y", "x")}
    root.create_array("0", data=volume(), **how)
    axes = [{"name": name, "type": "space", "unit": "nanometer"} for name in "zyx"]
    placed = [{"type": "scale", "scale": [40.0, 4.0, 4.0]}]
    levels = [{"path": "0", "coordinateTransformations": placed}]
    image: Any = {"name": "cells", "axes": axes, "datasets": levels}
    root.attrs["ome"] = {"version": "0.5", "multiscales": [image]}
    validate_zarr_store("image.ome.zarr")


def _mine() -> None:
    """Write half a volume without compression, with empty blocks in the other half."""
    how: Any = {"store_data_equal_to_fill_value": True, "create": True}
    made = opened("mine.n5/em/s0", metadata={**DOCUMENT, "compression": {"type": "raw"}}, **how)
    half = volume()
    half[16:] = 0
    made.write(half.T).result()
    assert Path("mine.n5/em/s0/2/2/2").exists()


def _lost() -> None:
    _sample("lost.n5")
    Path("lost.n5", LOST).unlink()


def _dead() -> None:
    """Leave what killed writers of n5zarr and tensorstore leave."""
    _sample("dead.n5")
    for name in (f"em/s0/0/0/1.{'0f' * 16}.partial", "em/s0/0/0/0.__lock"):
        Path("dead.n5", name).write_bytes(b"half a block")
        os.utime(Path("dead.n5", name), (time.time() - 7200,) * 2)


def _damaged() -> None:
    _sample("damaged.n5")
    block = Path("damaged.n5", LOST)
    block.write_bytes(block.read_bytes()[:100])


def _java() -> None:
    write_shards(Path("java.n5/em/s0"), volume(), (32, 24, 16), (64, 48, 32), compression="gzip")


def _changed() -> None:
    _sample("changed.n5")
    opened("changed.n5/em/s2")[3, 5, 7].write(0).result()


def _stopped() -> None:
    """Fill the disk in the middle of a conversion."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        n5zarr.convert("sample.n5", "stopped.zarr", progress=full)
    assert not Path("stopped.zarr/zarr.json").exists()


def _out() -> None:
    how: Any = {"shape": (40, 96, 128), "chunks": (16, 40, 50), "dtype": "uint8"}
    n5zarr.create_array("out.n5/em/s0", **how)


INPUTS: dict[str, Callable[[], object]] = {
    "sample.n5": lambda: _sample("sample.n5"),
    "single.n5": _single,
    "slices/": _slices,
    "tile0.tif": _tiles,
    "stack.tif": _stack,
    "scan.h5": _scan,
    "scans": _scans,
    "cells.dv": _cells,
    "session.nwb": _session,
    "cut.n5": _cut_session,
    "image.zarr": _image,
    "image.ome.zarr": _ome,
    "mine.n5": _mine,
    "lost.n5": _lost,
    "dead.n5": _dead,
    "damaged.n5": _damaged,
    "java.n5": _java,
    "changed.n5": _changed,
    "stopped.zarr": _stopped,
    "out.n5": _out,
    "dataset.xml": lambda: write_project(Path(), (0, 1, 3, 4)),
}


def prepare(code: str) -> None:
    """Make the files that a recipe names, in the current directory."""
    for name, make in INPUTS.items():
        if name in code:
            make()
