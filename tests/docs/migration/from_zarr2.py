"""List rows of zarr-python 2: its N5 stores, and groups and arrays on them."""

from __future__ import annotations

from tests.docs.migration.from_zarr2_arrays import CREATING, ELEMENTS, WRAPPER
from tests.docs.migration.model import Library, Section

__all__ = ["ZARR2"]

STORES = Section(
    "Stores",
    """
- zarr.open(zarr.N5Store("c.n5"), mode="r")
+ zarr.open(n5zarr.N5Store("c.n5"), mode="r")
- zarr.open(zarr.N5FSStore("c.n5"), mode="r")
+ zarr.open(n5zarr.N5FSStore("c.n5"), mode="r")
- zarr.open("c.n5", mode="r")
+ n5zarr.open("c.n5")
- zarr.open("c.n5", mode="r")["em/s0"]
+ n5zarr.open("c.n5/em/s0")
- zarr.open("c.n5")["em"].attrs["a"] = 1
+ n5zarr.open("c.n5", mode="a")["em"].attrs["a"] = 1
- zarr.open(zarr.N5FSStore("c.n5", mode="r"), mode="r")["em/s0"]
+ zarr.open(n5zarr.N5FSStore("c.n5", mode="r"), mode="r")["em/s0"]
- zarr.open(zarr.N5FSStore("c.n5", mode="r"), mode="a").create_group("x")
+ zarr.open(n5zarr.N5FSStore("c.n5", mode="r"), mode="a").create_group("x")
! both: zarr 3 raises `ValueError`, zarr 2 `PermissionError`
- zarr.open(zarr.N5FSStore("c.n5", mode="w"))
+ zarr.open(n5zarr.N5FSStore("c.n5", mode="w"))
- zarr.open(zarr.N5FSStore("c.n5", dimension_separator="."), mode="r")["em/s0"]
+ zarr.open(n5zarr.N5FSStore("c.n5", dimension_separator="."), mode="r")["em/s0"]
- zarr.open(zarr.N5FSStore("c.n5", check=True, create=True, auto_mkdir=True))
+ zarr.open(n5zarr.N5FSStore("c.n5", check=True, create=True, auto_mkdir=True))
- zarr.N5FSStore("c.n5", overwrite=False).path.endswith("c.n5")
+ n5zarr.N5FSStore("c.n5").root.name == "c.n5"
- import fsspec
- mapper = fsspec.get_mapper("c.n5")
- zarr.open(zarr.N5FSStore(mapper.root, fs=mapper.fs), mode="r")
+ import fsspec
+ mapper = fsspec.get_mapper("c.n5")
+ zarr.open(n5zarr.N5Store(mapper), mode="r")
- zarr.N5Store("c.n5") == zarr.N5Store("c.n5")
+ n5zarr.N5Store("c.n5") == n5zarr.N5Store("c.n5")
- isinstance(root.store, (zarr.N5Store, zarr.N5FSStore))
+ isinstance(root.store, n5zarr.N5Store)
- "em/s0/.zarray" in root.store
+ "em/s0/.zarray" in keys
- sorted(json.loads(root.store["em/s0/.zarray"]))
+ sorted(json.loads(keys["em/s0/.zarray"]))
# zarr 2 leaves out `dimension_separator`
- sorted(root.store.listdir("em"))
+ sorted(root["em"])
# zarr 2 lists `.zgroup` and `.zattrs`, too
- del root.store["em/s0/0.0.0"]
+ del keys["em/s0/0.0.0"]
- root.store.rmdir("em")
+ del root["em"]
- root.store.rename("em", "en")
+ Path("c.n5/em").rename("c.n5/en")
- copied = {}
- zarr.copy_store(root.store, copied, "em/mask", "em/mask")
- sorted(copied)
+ copied = {key: keys[key] for key in keys if key.startswith("em/mask/")}
+ sorted(copied)
# zarr 2 copies N5's keys, n5zarr Zarr's, which any Zarr reader understands
= zarr.consolidate_metadata(root.store)
! old: zarr 2 cannot open what it wrote
- zarr.group(zarr.N5FSStore("memory://b.n5")).create_group("x")
- cache = zarr.LRUStoreCache(zarr.N5FSStore("memory://b.n5"), max_size=2**20)
- zarr.open(cache, mode="r")
+ zarr.group(n5zarr.N5FSStore("memory://b.n5")).create_group("x")
+ cache = n5zarr.CacheOptions(bytes=2**20)
+ zarr.open(n5zarr.N5Store("memory://b.n5", cache=cache, read_only=True), mode="r")
""",
    others="""
- zarr.N5FSStore("c.n5", normalize_keys=False).path.endswith("c.n5")
+ n5zarr.N5FSStore("c.n5", normalize_keys=False).root.name == "c.n5"
- zarr.open(zarr.N5Store("c.n5", normalize_keys=True))["EM"]
+ zarr.open(n5zarr.N5FSStore("c.n5", normalize_keys=True))["EM"]
! both
- zarr.N5FSStore("c.n5", exceptions=(KeyError,)).path.endswith("c.n5")
+ n5zarr.N5FSStore("c.n5").root.name == "c.n5"
- import fsspec
- fs = fsspec.filesystem("file")
- zarr.open(zarr.N5FSStore("c.n5", fs=fs), mode="r")
+ import fsspec
+ fs = fsspec.filesystem("file")
+ zarr.open(n5zarr.N5FSStore("c.n5", fs=fs), mode="r")
- root = zarr.group(zarr.N5FSStore("memory://a.n5"))
- root.array("x", values)
- root["x"]
+ root = zarr.group(n5zarr.N5FSStore("memory://a.n5"))
+ root.create_array("x", data=values)
+ root["x"]
- import pickle
- zarr.open(pickle.loads(pickle.dumps(zarr.N5Store("c.n5"))), mode="r")
+ import pickle
+ zarr.open(pickle.loads(pickle.dumps(n5zarr.N5Store("c.n5"))), mode="r")
- isinstance(root.chunk_store, (zarr.N5Store, zarr.N5FSStore))
+ isinstance(root.store, n5zarr.N5Store)
- json.loads(root.store["em/.zattrs"])
+ json.loads(keys["em/.zattrs"])
- sorted(key for key in root.store if '.z' not in key)[:2]
+ sorted(key for key in keys if '.z' not in key)[:2]
# zarr 2 lists the blocks by their files, x first
""",
    before_old='import json\nroot = zarr.open(zarr.N5Store("c.n5"))',
    before_new="import json\n"
    'root = zarr.open(n5zarr.N5Store("c.n5"))\n'
    'keys = n5zarr.N5Store("c.n5", zarr_format=2).as_mapping()',
)

GROUPS = Section(
    "Groups and attributes",
    """
= zarr.open_group(store, mode="r")
= zarr.open_group(store, mode="r+")
= zarr.open_group(store, mode="a", path="x/y")
= zarr.open_group(store, mode="w", path="em")
= zarr.open_group(store, mode="w-", path="em")
! both: zarr 3 raises `FileExistsError`, zarr 2 `ValueError`
= zarr.open_group(store, mode="r", path="x")
! both
= zarr.group(store)
= zarr.group(store, overwrite=True)
- zarr.group(store, cache_attrs=False)
+ zarr.group(store)
- zarr.open_group(store, synchronizer=zarr.ThreadSynchronizer())
+ zarr.open_group(store)
= root.create_group("x/y")
= root.create_group("em", overwrite=True)
= root.create_group("em")
! both
- root.create_groups("x", "y")
+ root.require_groups("x", "y")
= root.require_group("em")
= root.require_groups("em", "x")
= "em/s0" in root, "x" in root
= root["em"]["s0"]
= root["x"]
! new: zarr 2 shows an empty group where nothing is
= root.get("x")
# zarr 2 shows an empty group where nothing is
- root.em.s0
+ root["em"]["s0"]
= list(root)
- len(root)
+ len(list(root))
= sorted(root["em"].keys())
= sorted(root["em"].array_keys())
= sorted(root.group_keys())
= dict(root["em"].arrays())
= dict(root.groups())
- found = []
- root.visititems(lambda name, node: found.append(name))
- sorted(found)
+ sorted(name for name, node in root.members(max_depth=None))
= root.name, root.path, root['em'].name
= root['em'].basename
= del root["em/s0"]
- root.move("em", "en")
+ Path("c.n5/em").rename("c.n5/en")
= root.read_only
= root == zarr.open(store)
- with zarr.open(store) as group:
-     x = group.create_group('x')
+ group = zarr.open(store)
+ x = group.create_group('x')
= root["em"].attrs["name"]
= root["em"].attrs.asdict()
= dict(root.attrs)
= root["em"].attrs["a"] = {"b": [1, 2.5]}
- root["em/s0"].attrs.update(a=1, b="x")
+ root["em/s0"].attrs.update({"a": 1, "b": "x"})
= root["em/s0"].attrs.put({"a": 1})
= del root["em/s0"].attrs["units"]
= root["em"].attrs["x"]
! both
- root["em/s0"].attrs["dimensions"] = [1]
- root["em/s0"].attrs["dimensions"]
+ root["em/s0"].attrs["dimensions"] = [1]
+ root["em/s0"].attrs["dimensions"]
! old: zarr 2 replaced N5's own key, and the array was lost; n5zarr keeps both
= root.attrs["n5"] = "4.0.0"
= root.tree() is not None
= root["em/s0"].info is not None
""",
    others="""
- found = []
- root.visit(found.append)
- sorted(found)
+ sorted(name for name, _ in root.members(max_depth=None))
""",
    before_old='store = zarr.N5Store("c.n5")\nroot = zarr.open(store)',
    before_new='store = n5zarr.N5Store("c.n5")\nroot = zarr.open(store)',
)

REMOTE = Section(
    "Servers, and dask",
    """
- zarr.open(zarr.N5FSStore("s3://lab/c.n5", anon=True, client_kwargs=client), mode="r")
+ zarr.open(n5zarr.N5FSStore("s3://lab/c.n5", anon=True, client_kwargs=client), mode="r")
- zarr.open(zarr.N5FSStore("s3://lab/c.n5", anon=True, client_kwargs=client), mode="r")["em/s0"]
+ n5zarr.open("s3://lab/c.n5/em/s0", storage_options={"anon": True, "client_kwargs": client})
- zarr.open(zarr.N5FSStore(f"{server}/lab/c.n5"), mode="r")["em/s0"]
+ n5zarr.open(f"{server}/lab/c.n5/em/s0")
- da.from_zarr(zarr.N5Store("c.n5"), component="em/s0").mean().compute()
+ da.from_zarr(n5zarr.N5Store("c.n5"), component="em/s0").mean().compute()
- da.from_array(values, chunks=(2, 3, 4)).to_zarr(zarr.N5Store("c.n5"), component="x", \
compressor=numcodecs.GZip())
+ da.from_array(values, chunks=(2, 3, 4)).to_zarr(n5zarr.N5Store("c.n5"), component="x", \
compressors=zarr.codecs.GzipCodec())
""",
    others="""
- import s3fs
- fs = s3fs.S3FileSystem(anon=True, client_kwargs=client)
- zarr.open(zarr.N5FSStore("lab/c.n5", fs=fs), mode="r")["em/s0"]
+ import s3fs
+ fs = s3fs.S3FileSystem(anon=True, client_kwargs=client)
+ zarr.open(n5zarr.N5FSStore("lab/c.n5", fs=fs), mode="r")["em/s0"]
- a = zarr.open(zarr.N5FSStore("c.n5"), mode="r")["em/s0"]
- da.from_array(a, chunks=a.chunks).sum().compute()
+ a = n5zarr.open("c.n5/em/s0")
+ da.from_array(a, chunks=a.chunks).sum().compute()
- x = zarr.open(zarr.N5Store("c.n5")).create_dataset("x", shape=values.shape, chunks=(2, 3, 4), \
dtype="u2", compressor=numcodecs.GZip())
- da.store(da.from_array(values, chunks=(2, 3, 4)), x, lock=False)
+ x = n5zarr.create_array("c.n5/x", shape=values.shape, chunks=(2, 3, 4), dtype="u2", \
compression="gzip")
+ da.store(da.from_array(values, chunks=(2, 3, 4)), x, lock=False)
""",
    before_old='import dask.array as da\nserver = "http://localhost:9000"\n'
    'client = {"endpoint_url": server}  # of a server of your own',
    before_new='import dask.array as da\nserver = "http://localhost:9000"\n'
    'client = {"endpoint_url": server}  # of a server of your own',
)

ZARR2 = Library(
    name="zarr 2",
    page="zarr-2",
    before_old="import numcodecs, zarr",
    before_new="import n5zarr, numcodecs, zarr",
    sections=(STORES, REMOTE, GROUPS, CREATING, ELEMENTS, WRAPPER),
    packages=("zarr==2.18.7", "numcodecs<0.16", "s3fs", "aiohttp", "dask[array]<2025"),
)
