"""Free-threaded Python (3.13t and later) and subinterpreters do not crash.

A Python without the lock is found as ``python3.14t`` or ``python3.13t``, or by its path in
``N5ZARR_FREE_THREADED``. zarr needs packages that such a Python may lack, so the kernel alone is
compiled for it, and called without numpy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from n5zarr.fast import kernel

ROOT = Path(__file__).parents[2]
NAMES = ("python3.15t", "python3.14t", "python3.13t")


def run(python: str, script: str, *arguments: object) -> str:
    """Run a script in a process of its own, as it may crash."""
    command = [python, "-W", "ignore", "-c", textwrap.dedent(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def free_threaded() -> str:
    given = os.environ.get("N5ZARR_FREE_THREADED")
    found = given or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Python without its lock here")
    # a shim of pyenv is there for versions that are not selected, and does not start
    probe = [found, "-c", "import sys; sys.exit(sys._is_gil_enabled())"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("no Python without its lock here")
    return found


COMPILE = """
import subprocess, sys, sysconfig
path = sys.argv[2] + "/_kernel" + sysconfig.get_config_var("EXT_SUFFIX")
include = sysconfig.get_path("include")
options = ["-shared", "-fPIC", "-O2", "-I", include, "-o", path]
subprocess.run(["cc", *options, sys.argv[1]], check=True)
print(path)
"""

# 16 threads share the 32 raw blocks of one dataset, then write parts of the same blocks
WITHOUT_THE_LOCK = """
import array, importlib.util, os, sys, threading
spec = importlib.util.spec_from_file_location("n5zarr.fast._kernel", sys.argv[1])
kernel = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kernel)
assert not sys._is_gil_enabled(), "the kernel has switched the lock on"
N, BLOCK, PART = 32, 64, 128
SIZE = N * BLOCK
directory, errors = os.fsencode(sys.argv[2]), []

def call(function, values, start, taken, *options):
    geometry = array.array("q", [BLOCK, SIZE, start, start + len(values)])
    kernel.use(*[0] * 13)  # as another interpreter of the process may
    return function(directory, geometry, memoryview(values), 0, b"\\0", 0, taken,
                    bytearray(2**17), bytearray(2**17), None, *options)

def write(values, start, taken, k):
    return call(kernel.write_box, values, start, taken, (None, 1, 0, 0, 0, 0, "", f"{k:016x}"))

def on_threads(work):
    def careful(k):
        try:
            work(k)
        except BaseException as err:
            errors.append(err)
    threads = [threading.Thread(target=careful, args=(k,)) for k in range(16)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not errors, errors

for turn in range(8):
    expected = bytearray((turn * k) % 251 + 1 for k in range(SIZE))
    taken = array.array("q", [0])
    on_threads(lambda k: write(expected, 0, taken, k))
    for k in range(16):
        expected[k * PART + 9 : k * PART + 100] = bytes([k]) * 91

    def part(k):
        left = True
        while left:  # blocks that another thread has locked are left
            left = write(bytes([k]) * 91, k * PART + 9, array.array("q", [0]), k + 16)

    on_threads(part)
    found, taken = bytearray(SIZE), array.array("q", [0])
    on_threads(lambda k: call(kernel.read_box, found, 0, taken))
    assert found == expected, turn
assert len(os.listdir(sys.argv[2])) == N
print("right", sys._is_gil_enabled())
"""


def test_the_kernel_is_right_without_the_lock(free_threaded: str, tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    module = run(free_threaded, COMPILE, ROOT / "n5zarr/fast/_kernel.c", tmp_path).strip()
    (tmp_path / "d").mkdir()
    assert run(free_threaded, WITHOUT_THE_LOCK, module, tmp_path / "d") == "right False\n"


# ---------------------------------------------------------------------- subinterpreters

IN_SUBINTERPRETER = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    sys.exit("no subinterpreters with a configuration")
found = interpreters.create(sys.argv[1])
failure = interpreters.exec(found, sys.argv[2])
print("did it" if failure is None else f"{failure.type.__name__}: {failure.msg}")
interpreters.destroy(found)
"""

LOAD = f"""
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("n5zarr.fast._kernel", {getattr(kernel._kernel, "__file__", "")!r})
spec.loader.exec_module(module_from_spec(spec))
"""

BLOCKS = """
import numpy as np, n5zarr
for compression in ({"type": "gzip"}, {"type": "zstd"}, {"type": "blosc", "cname": "lz4"}):
    elements = np.arange(77, dtype="u2").reshape(7, 11)
    block = n5zarr.encode_block(elements, compression=compression)
    assert block[:12] == bytes([0, 0, 0, 2, 0, 0, 0, 11, 0, 0, 0, 7])
    found = n5zarr.decode_block(block, data_type="uint16", compression=compression)
    assert np.array_equal(found, elements)
"""

needs_subinterpreters = pytest.mark.skipif(
    sys.version_info < (3, 13), reason="there are no such subinterpreters before Python 3.13"
)


@needs_subinterpreters
@pytest.mark.skipif(kernel._kernel is None, reason="no compiled kernel")
def test_the_kernel_refuses_interpreters_with_a_lock_of_their_own() -> None:
    said = run(sys.executable, IN_SUBINTERPRETER, "isolated", LOAD)
    assert said.startswith("ImportError: module n5zarr.fast._kernel does not support loading in")
    assert run(sys.executable, IN_SUBINTERPRETER, "legacy", LOAD) == "did it\n"


@needs_subinterpreters
def test_n5zarr_is_refused_where_numpy_is() -> None:
    refused = run(sys.executable, IN_SUBINTERPRETER, "isolated", "import n5zarr; n5zarr.open")
    assert refused.startswith("ImportError: ")
    assert "umpy" in refused


@needs_subinterpreters
def test_subinterpreters_that_share_the_lock_encode_and_decode_blocks() -> None:
    assert run(sys.executable, IN_SUBINTERPRETER, "legacy", BLOCKS) == "did it\n"
