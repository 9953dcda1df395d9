"""Check the basic functions of an installed n5zarr; `.ci/run` runs it outside the checkout."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import zarr

import n5zarr
from n5zarr.fast.kernel import is_compiled


def main() -> None:
    package = Path(n5zarr.__file__).parent
    assert package.is_relative_to(sys.prefix), f"not the installed copy: {package}"
    assert (package / "py.typed").is_file()
    plain = zarr.open_group(n5zarr.N5Store(n5zarr.sample_path()))["em/s0"]
    fast = n5zarr.open(n5zarr.sample_path(), path="em/s0")
    assert isinstance(plain, zarr.Array)
    assert isinstance(fast, zarr.Array)
    values = np.asarray(plain[...])
    assert values.shape == (40, 96, 128)
    assert values.std() > 1
    np.testing.assert_array_equal(values, fast[...])
    box = values[:3, :5, :7]
    block = n5zarr.encode_block(box, compression={"type": "lz4"})
    decoded = n5zarr.decode_block(block, data_type="uint8", compression={"type": "lz4"})
    np.testing.assert_array_equal(decoded, box)
    if sys.platform != "win32" and (compiler := shutil.which("cc") or shutil.which("gcc")):
        assert is_compiled(), f"{compiler} is here, and the wheel has no compiled kernel"
    compiled = "compiled kernel" if is_compiled() else "no compiled kernel"
    print(f"n5zarr {n5zarr.__version__} in {package}, {compiled}: ok")  # noqa: T201 - it is a script


if __name__ == "__main__":
    main()
