"""List the calls of each library that the features need: open, read, attributes, create.

Axes are in C order. Where a library has no call for something, the nearest one that it has is
tried.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.docs.migration.from_zarr2 import ZARR2

__all__ = ["LIBRARIES", "Library"]

COMMON = """
import hashlib, json, pickle, zlib
from importlib.metadata import metadata

zarr2 = z5py = None  # where a library has no such names

class FixtureError(ValueError):
    pass

def sure(is_right):
    if not is_right:
        raise FixtureError

def digest(elements):
    array = np.asarray(elements)
    big = np.ascontiguousarray(array, array.dtype.newbyteorder(">"))
    return array.dtype.name, array.shape, hashlib.sha256(big.tobytes()).hexdigest()

def elements(array):
    return array[...]

def read(root, path):
    return elements(opened(root, path))

def read_block(root, path, position):
    return read(root, path)

def children(root, path):
    return sorted(opened(root, path))

def axes(root, path):
    data = coordinates(root, path)
    return {name: data[name].attrs.get("units") for name in data.dims}

def coordinates(root, path):
    return opened(root, path)

def anything(root, path):
    return read(root, path)
"""

N5ZARR = """
import n5zarr, zarr
import xarray as xr
from n5zarr.compat import z5py, zarr2

def opened(root, path):
    return n5zarr.open(root, path=path)

def read_block(root, path, position):
    return n5zarr.read_block(root, path, position).data

def change(root, path):
    n5zarr.open(root, "r+", path=path).attrs["new"] = 1

def create(root, path, array):
    n5zarr.create_array(root, path=path, data=array)

def create_filled(root, path, value):
    n5zarr.create_array(root, path=path, shape=(2, 3), dtype="u2", fill_value=value)

def coordinates(root, path):
    return next(iter(xr.open_dataset(root, engine="n5", group=path).values()))
"""

ZARR_2 = """
import zarr
import zarr as zarr2
import xarray as xr

def opened(root, path):
    return zarr.open(zarr.N5FSStore(root), mode="r", path=path)

def change(root, path):
    zarr.open(zarr.N5FSStore(root), mode="r+", path=path).attrs["new"] = 1

def create(root, path, array):
    group = zarr.open_group(zarr.N5FSStore(root), mode="a")
    is_text = array.dtype == object
    made = group.create_dataset(path, shape=array.shape, dtype=str if is_text else array.dtype)
    made[...] = array

def create_filled(root, path, value):
    group = zarr.open_group(zarr.N5FSStore(root), mode="a")
    group.create_dataset(path, shape=(2, 3), dtype="u2", fill_value=value)

def coordinates(root, path):
    group, name = ("/" + path).rsplit("/", 1)
    store = zarr.N5FSStore(root)
    return xr.open_dataset(store, engine="zarr", group=group, consolidated=False)[name]

def anything(root, path):
    return zarr.open(root, mode="r")[path][...]
"""

Z5 = """
import z5py

def opened(root, path):
    return z5py.File(str(root), "r")[path]

def elements(array):
    return array[tuple(slice(None) for _ in array.shape)]

def read_block(root, path, position):
    return opened(root, path).read_chunk(position)

def change(root, path):
    z5py.File(root, "a")[path].attrs["new"] = 1

def create(root, path, array):
    z5py.File(root, "a").create_dataset(path, data=array, chunks=array.shape)

def create_filled(root, path, value):
    file = z5py.File(root, "a")
    file.create_dataset(path, shape=(2, 3), chunks=(2, 3), dtype="uint16", fillvalue=value)
"""

TENSORSTORE = """
import tensorstore as ts

def spec(root, path):
    url = str(root)
    driver = {"driver": "http", "base_url": url + "/", "path": path}
    kvstore = driver if url.startswith("http") else {"driver": "file", "path": f"{root}/{path}"}
    return {"driver": "n5", "kvstore": kvstore}

def opened(root, path):
    return ts.open(spec(root, path)).result()

def elements(array):
    return array.read().result().T

def change(root, path):
    opened(root, path).resize(exclusive_max=[7, 6, 4]).result()

def create(root, path, array):
    made = ts.open(spec(root, path), create=True, dtype=ts.dtype(array.dtype),
                   shape=array.shape[::-1]).result()
    made.write(array.T).result()

def create_filled(root, path, value):
    ts.open(spec(root, path), create=True, dtype=ts.uint16, shape=(3, 2), fill_value=value).result()

def axes(root, path):
    array = opened(root, path)
    units = [unit.to_json()[1] for unit in array.dimension_units]
    return dict(zip(array.domain.labels[::-1], units[::-1]))

def anything(root, path):
    kvstore = {"driver": "file", "path": f"{root}/{path}/"}
    return ts.open({"driver": "auto", "kvstore": kvstore}).result().read().result()
"""

ZARR_N5 = """
import zarr
import xarray as xr
from zarr.storage import FsspecStore, LocalStore
from zarr_n5 import ImplicitGroupWrapperStore, N5WrapperStore

# zarr imports n5zarr, too, which is installed: its codec and its pipeline take no part
import n5zarr
zarr.config.set({"codecs.n5_default": "zarr_n5.codec.default.N5DefaultCodec",
    "codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"})

def store(root):
    is_url = str(root).startswith("http")
    inner = FsspecStore.from_url(root) if is_url else LocalStore(root)
    return ImplicitGroupWrapperStore(N5WrapperStore(inner))

def opened(root, path):
    return zarr.open(store(root), mode="r", path=path)

def elements(array):
    return array[...].T

def change(root, path):
    zarr.open(store(root), mode="r+", path=path).attrs["new"] = 1

def create(root, path, array):
    zarr.create_array(N5WrapperStore(LocalStore(root)), name=path, data=array)

def create_filled(root, path, value):
    store = N5WrapperStore(LocalStore(root))
    zarr.create_array(store, name=path, shape=(2, 3), dtype="u2", fill_value=value)

def coordinates(root, path):
    group, name = ("/" + path).rsplit("/", 1)
    return xr.open_dataset(store(root), engine="zarr", group=group, consolidated=False)[name]
"""


@dataclass(frozen=True)
class Library:
    """A library, and its calls."""

    name: str  # as the table calls it
    distribution: str  # its name in package indexes
    lines: str  # define its calls
    packages: tuple[str, ...] = ()  # that an environment of its own needs

    @property
    def before(self) -> str:
        return f"{COMMON}{self.lines}\ndistribution = {self.distribution!r}\n"


LIBRARIES = (
    Library("n5zarr", "n5zarr", N5ZARR),
    Library("zarr 2", "zarr", ZARR_2, (*ZARR2.packages, "aiohttp", "xarray<2025.2")),
    Library("z5py", "z5py", Z5),
    Library("tensorstore", "tensorstore", TENSORSTORE),
    Library("zarr-n5", "zarr-n5", ZARR_N5),
)
