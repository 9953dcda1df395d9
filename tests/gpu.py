"""The GPU of the tests: cupy's, if there is one, else a stand-in that counts what is moved.

``uv run python -m tests.gpu`` prints the table of ``docs/machine-learning.md``: the bytes that are
moved to the device and back for each byte of an array. With cupy and a GPU, ``uv run --with
cupy-cuda13x pytest tests/contract/test_gpu.py`` runs the tests there too, and ``uv run --with
cupy-cuda13x python -m tests.gpu --seconds`` prints how long reading takes.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import N5Store
from n5zarr.fast.default import default_pipeline_name

STAND_IN = Path(__file__).parent / "cupy_stand_in"
SHAPE, CHUNKS = (23, 31, 19), (5, 7, 11)  # blocks truncated along every axis


def has_gpu() -> bool:
    """Return whether cupy is installed and finds a GPU."""
    try:
        return bool(import_module("cupy").cuda.runtime.getDeviceCount())
    except (ImportError, RuntimeError):  # no cupy; no driver or device
        return False


@contextmanager
def stand_in() -> Iterator[Any]:
    """Let zarr and n5zarr use the stand-in for cupy."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("cupy", "cupyx"):
            spec = spec_from_file_location(name, STAND_IN / f"{name}.py")
            assert spec is not None
            assert spec.loader is not None
            module = module_from_spec(spec)
            patch.setitem(sys.modules, name, module)
            spec.loader.exec_module(module)
        of_zarr = sys.modules[zarr.buffer.gpu.NDBuffer.__module__]
        patch.setattr(of_zarr, "cp", sys.modules["cupy"])
        yield sys.modules["cupy"]


def count(cupy: Any, do: Callable[[], object]) -> tuple[int, int]:
    """Return the bytes that a function moves to the device and back."""
    before = dict(cupy.moved)
    do()
    there, back = (cupy.moved[way] - before[way] for way in ("to device", "to host"))
    return there, back


def made(path: Path, shape: tuple[int, ...], chunks: tuple[int, ...]) -> np.ndarray:
    """Write the same array as N5 and Zarr; return its elements."""
    values = np.random.default_rng(1).integers(1, 6, shape).astype("u2")
    zstd = zarr.codecs.ZstdCodec()
    zarr.create_array(path / "d.zarr", data=values, chunks=chunks, compressors=zstd)
    n5zarr.create_array(path / "d.n5", path="d", data=values, chunks=chunks, compression="zstd")
    n5zarr.create_array(path / "w.n5", path="d", shape=shape, chunks=chunks, dtype="u2")
    return values


def ways(path: Path, values: np.ndarray, cupy: Any) -> dict[str, Callable[[], Any]]:
    """Return functions that read or write the array."""

    def before() -> Any:
        with zarr.config.set({"codec_pipeline.path": default_pipeline_name()}):
            return zarr.open_array(N5Store(path / "d.n5"), path="d", mode="r")[...]

    def write(array: Any) -> None:
        array[...] = values

    plain = zarr.open_array(path / "d.zarr", mode="r")
    of_zarr = zarr.open_array(N5Store(path / "d.n5"), path="d", mode="r")
    of_n5zarr: Any = n5zarr.open_array(path / "d.n5", path="d")
    to_write = n5zarr.open_array(path / "w.n5", path="d", mode="r+")
    values = cupy.asarray(values)
    return {
        "plain Zarr, `zarr.open`": lambda: plain[...],
        "`N5Store` with zarr's own pipeline": before,
        "`N5Store`, `zarr.open`": lambda: of_zarr[...],
        "`n5zarr.open`": lambda: of_n5zarr[...],
        "`read_boxes`": lambda: of_n5zarr.read_boxes([(0,) * values.ndim], values.shape),
        "`n5zarr.open`, writing": lambda: write(to_write),
    }


def print_moved(path: Path) -> None:
    """Print how many bytes each way moves for each byte of an array."""
    values = made(path, SHAPE, CHUNKS)
    print("| way | to the device | back |\n|---|---|---|")
    with stand_in() as cupy, zarr.config.enable_gpu():
        for name, way in ways(path, values, cupy).items():
            there, back = (n / values.nbytes for n in count(cupy, way))
            print(f"| {name} | {there:.2f} | {back:.2f} |")


def print_seconds(path: Path) -> None:
    values = made(path, (420, 500, 580), (128, 128, 128))
    cupy = import_module("cupy")
    with zarr.config.enable_gpu():
        for name, way in ways(path, values, cupy).items():
            best = math.inf
            for _ in range(3):
                begin = time.perf_counter()
                way()
                cupy.cuda.Device().synchronize()
                best = min(best, time.perf_counter() - begin)
            print(f"{name}: {best:.3f} s, {values.nbytes / best / 1e9:.2f} GB/s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", action="store_true")
    with tempfile.TemporaryDirectory() as folder:
        (print_seconds if parser.parse_args().seconds else print_moved)(Path(folder))
