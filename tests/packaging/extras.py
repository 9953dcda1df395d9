"""Check an extra in an environment with that extra alone: ``python extras.py NAME DATA``.

`.ci/extras` runs it outside of the checkout, with the wheel installed. DATA is `tests/data`.
"""

from __future__ import annotations

import functools
import http.server
import importlib
import io
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

import n5zarr

SAMPLE = n5zarr.sample_path()
COMMAND = [sys.executable, "-m", "n5zarr"]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def values() -> Any:
    return n5zarr.open_array(SAMPLE, path="em/s0")[...]


def check_nothing(_: Path) -> None:
    made = n5zarr.create_array("made.n5", path="a", data=values(), chunks=(16, 40, 50))
    np.testing.assert_array_equal(made[...], values())
    for name, extra in (("to_n5", "xarray"), ("serve", "view")):
        try:
            getattr(n5zarr, name)
        except n5zarr.N5Error as err:
            assert f"n5zarr[{extra}]" in str(err), err
        else:
            raise AssertionError(name)
    done = subprocess.run([*COMMAND, "tree", SAMPLE], capture_output=True, text=True, check=False)
    assert done.returncode, done.stdout
    assert "n5zarr[cli]" in done.stderr, done.stderr


def check_xarray(_: Path) -> None:
    import xarray as xr

    dataset = xr.open_dataset(SAMPLE, engine="n5", group="em/s0", chunks={})
    assert dataset.sizes == {"z": 40, "y": 96, "x": 128}
    n5zarr.to_n5(dataset, "xarray.n5")
    xr.testing.assert_identical(xr.open_dataset("xarray.n5", engine="n5"), dataset)


def check_remote(_: Path) -> None:
    from obstore.store import LocalStore
    from zarr.storage import ObjectStore

    handler = functools.partial(Quiet, directory=SAMPLE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        np.testing.assert_array_equal(n5zarr.open_array(url, path="em/s0")[...], values())
        server.shutdown()
    objects = ObjectStore(LocalStore(SAMPLE), read_only=True)
    np.testing.assert_array_equal(n5zarr.open_array(objects, path="em/s0")[...], values())
    for name in ("s3fs", "gcsfs"):
        importlib.import_module(name)


def check_cli(_: Path) -> None:
    for arguments in (["tree", SAMPLE], ["info", f"{SAMPLE}/em/s0"], ["validate", SAMPLE]):
        subprocess.run([*COMMAND, *arguments], check=True, capture_output=True)


def check_lz4(_: Path) -> None:
    lz4 = {"type": "lz4"}
    block = n5zarr.encode_block(values(), compression=lz4)
    read = n5zarr.decode_block(block, data_type="uint8", compression=lz4)
    np.testing.assert_array_equal(read, values())


def check_jpeg(_: Path) -> None:
    from PIL import Image

    data = io.BytesIO()
    Image.fromarray(np.full((8, 16), 77, "uint8")).save(data, "jpeg")
    header = b"\0\0\0\2" + (16).to_bytes(4) + (8).to_bytes(4)
    read = n5zarr.decode_block(
        header + data.getvalue(), data_type="uint8", compression={"type": "jpeg"}
    )
    np.testing.assert_array_equal(read, np.full((8, 16), 77))


def check_snappy(data: Path) -> None:
    for _, node in n5zarr.open_group(data / "snappy.n5").members():
        assert np.asarray(node[...]).std() > 0  # type: ignore[index]


def check_plot(_: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    n5zarr.plot(SAMPLE).savefig("plot.png")
    assert Path("plot.png").stat().st_size > 10_000


def check_hdf5(_: Path) -> None:
    import h5py

    with h5py.File("a.h5", "w") as file:
        file["em"] = values()
    n5zarr.convert("a.h5", "hdf5.n5")
    np.testing.assert_array_equal(n5zarr.open_array("hdf5.n5", path="em")[...], values())


def check_tiff(_: Path) -> None:
    import tifffile

    tifffile.imwrite("a.tif", values())
    n5zarr.convert("a.tif", "tiff.n5/a")
    np.testing.assert_array_equal(n5zarr.open_array("tiff.n5", path="a")[...], values())


def check_hdmf(_: Path) -> None:
    from hdmf.common import DynamicTable, VectorData, get_manager

    from n5zarr.hdmf import N5IO

    column = VectorData(name="a", description="numbers", data=np.arange(7))
    table = DynamicTable(name="t", description="a table", columns=[column])
    with N5IO("hdmf.n5", manager=get_manager(), mode="w") as file:
        file.write(table)
    with N5IO("hdmf.n5", manager=get_manager(), mode="r") as file:
        np.testing.assert_array_equal(file.read()["a"].data[:], np.arange(7))


def check_virtual(_: Path) -> None:
    assert n5zarr.virtualize(SAMPLE, "refs.json").n_arrays == 4
    assert n5zarr.virtualize(SAMPLE, "refs.parq").n_arrays == 4
    assert n5zarr.virtualize(SAMPLE, "refs.icechunk").n_arrays == 4


def check_view(_: Path) -> None:
    with n5zarr.serve(SAMPLE) as server, urllib.request.urlopen(server.url) as page:
        assert b"em" in page.read()
    importlib.import_module("neuroglancer")


def check_napari(_: Path) -> None:
    layers = n5zarr.napari_layers(SAMPLE)
    assert [kind for _, _, kind in layers].count("image") == 1
    np.testing.assert_array_equal(np.asarray(layers[0][0][0]), values())


def check_bioio(_: Path) -> None:
    from bioio import BioImage

    image = BioImage(SAMPLE)
    assert image.scenes
    assert image.shape[-3:] == (40, 96, 128)


def main() -> None:
    assert not Path(n5zarr.__file__).is_relative_to(Path(sys.argv[2]).parents[1]), n5zarr.__file__
    checks = {n[6:]: check for n, check in globals().items() if n.startswith("check_")}
    names = sorted(set(checks) - {"nothing"}) if sys.argv[1] == "all" else [sys.argv[1]]
    for name in names:
        checks[name](Path(sys.argv[2]))


if __name__ == "__main__":
    main()
