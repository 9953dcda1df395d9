"""Start processes quickly, by forking one that has imported the modules that tests need."""

from __future__ import annotations

from multiprocessing import get_all_start_methods, get_context
from typing import Any

METHOD = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
CONTEXT: Any = get_context(METHOD)  # typeshed gives it no processes
if METHOD == "forkserver":
    CONTEXT.set_forkserver_preload(["n5zarr", "dask.array", "xarray", "tests.faults.test_writers"])
