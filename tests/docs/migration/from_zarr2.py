"""List rows of zarr-python 2: its N5 stores, and groups and arrays on them."""

from __future__ import annotations

from tests.docs.migration.from_zarr2_arrays import CREATING, ELEMENTS, WRAPPER
from tests.docs.migration.model import Library, Row, Section

__all__ = ["ZARR2"]

STORES = Section(
    "Stores",
    (
        Row(
            'zarr.open(zarr.N5Store("c.n5"), mode="r")',
            'zarr.open(n5zarr.N5Store("c.n5"), mode="r")',
        ),
        Row(
            'zarr.open(zarr.N5FSStore("c.n5"), mode="r")',
            'zarr.open(n5zarr.N5FSStore("c.n5"), mode="r")',
        ),
        Row('zarr.open("c.n5", mode="r")', 'n5zarr.open("c.n5")'),
        Row('zarr.open("c.n5", mode="r")["em/s0"]', 'n5zarr.open("c.n5/em/s0")'),
        Row(
            'zarr.open("c.n5")["em"].attrs["a"] = 1',
            'n5zarr.open("c.n5", mode="a")["em"].attrs["a"] = 1',
        ),
        Row(
            'zarr.N5FSStore("c.n5", normalize_keys=False).path.endswith("c.n5")',
            'n5zarr.N5FSStore("c.n5", normalize_keys=False).root.name == "c.n5"',
            listed=False,
        ),
        Row(
            'zarr.open(zarr.N5Store("c.n5", normalize_keys=True))["EM"]',
            'zarr.open(n5zarr.N5FSStore("c.n5", normalize_keys=True))["EM"]',
            raises="both",
            listed=False,
        ),
        Row(
            'zarr.open(zarr.N5FSStore("c.n5", mode="r"), mode="r")["em/s0"]',
            'zarr.open(n5zarr.N5FSStore("c.n5", mode="r"), mode="r")["em/s0"]',
        ),
        Row(
            'zarr.open(zarr.N5FSStore("c.n5", mode="r"), mode="a").create_group("x")',
            'zarr.open(n5zarr.N5FSStore("c.n5", mode="r"), mode="a").create_group("x")',
            "zarr 3 raises `ValueError`, zarr 2 `PermissionError`",
            raises="both",
        ),
        Row(
            'zarr.open(zarr.N5FSStore("c.n5", mode="w"))',
            'zarr.open(n5zarr.N5FSStore("c.n5", mode="w"))',
        ),
        Row(
            'zarr.open(zarr.N5FSStore("c.n5", dimension_separator="."), mode="r")["em/s0"]',
            'zarr.open(n5zarr.N5FSStore("c.n5", dimension_separator="."), mode="r")["em/s0"]',
        ),
        Row(
            'zarr.open(zarr.N5FSStore("c.n5", check=True, create=True, auto_mkdir=True))',
            'zarr.open(n5zarr.N5FSStore("c.n5", check=True, create=True, auto_mkdir=True))',
        ),
        Row(
            'zarr.N5FSStore("c.n5", overwrite=False).path.endswith("c.n5")',
            'n5zarr.N5FSStore("c.n5").root.name == "c.n5"',
        ),
        Row(
            'zarr.N5FSStore("c.n5", exceptions=(KeyError,)).path.endswith("c.n5")',
            'n5zarr.N5FSStore("c.n5").root.name == "c.n5"',
            listed=False,
        ),
        Row(
            'import fsspec\nfs = fsspec.filesystem("file")\n'
            'zarr.open(zarr.N5FSStore("c.n5", fs=fs), mode="r")',
            'import fsspec\nfs = fsspec.filesystem("file")\n'
            'zarr.open(n5zarr.N5FSStore("c.n5", fs=fs), mode="r")',
            listed=False,
        ),
        Row(
            'import fsspec\nmapper = fsspec.get_mapper("c.n5")\n'
            'zarr.open(zarr.N5FSStore(mapper.root, fs=mapper.fs), mode="r")',
            'import fsspec\nmapper = fsspec.get_mapper("c.n5")\n'
            'zarr.open(n5zarr.N5Store(mapper), mode="r")',
        ),
        Row(
            'root = zarr.group(zarr.N5FSStore("memory://a.n5"))\n'
            'root.array("x", values)\nroot["x"]',
            'root = zarr.group(n5zarr.N5FSStore("memory://a.n5"))\n'
            'root.create_array("x", data=values)\nroot["x"]',
            listed=False,
        ),
        Row(
            'zarr.N5Store("c.n5") == zarr.N5Store("c.n5")',
            'n5zarr.N5Store("c.n5") == n5zarr.N5Store("c.n5")',
        ),
        Row(
            'import pickle\nzarr.open(pickle.loads(pickle.dumps(zarr.N5Store("c.n5"))), mode="r")',
            "import pickle\n"
            'zarr.open(pickle.loads(pickle.dumps(n5zarr.N5Store("c.n5"))), mode="r")',
            listed=False,
        ),
        Row(
            "isinstance(root.store, (zarr.N5Store, zarr.N5FSStore))",
            "isinstance(root.store, n5zarr.N5Store)",
        ),
        Row(
            "isinstance(root.chunk_store, (zarr.N5Store, zarr.N5FSStore))",
            "isinstance(root.store, n5zarr.N5Store)",
            listed=False,
        ),
        Row('"em/s0/.zarray" in root.store', '"em/s0/.zarray" in keys'),
        Row('json.loads(root.store["em/.zattrs"])', 'json.loads(keys["em/.zattrs"])', listed=False),
        Row(
            'sorted(json.loads(root.store["em/s0/.zarray"]))',
            'sorted(json.loads(keys["em/s0/.zarray"]))',
            "zarr 2 leaves out `dimension_separator`",
        ),
        Row(
            "sorted(key for key in root.store if '.z' not in key)[:2]",
            "sorted(key for key in keys if '.z' not in key)[:2]",
            "zarr 2 lists the blocks by their files, x first",
            listed=False,
        ),
        Row(
            'sorted(root.store.listdir("em"))',
            'sorted(root["em"])',
            "zarr 2 lists `.zgroup` and `.zattrs`, too",
        ),
        Row('del root.store["em/s0/0.0.0"]', 'del keys["em/s0/0.0.0"]'),
        Row('root.store.rmdir("em")', 'del root["em"]'),
        Row('root.store.rename("em", "en")', 'Path("c.n5/em").rename("c.n5/en")'),
        Row(
            'copied = {}\nzarr.copy_store(root.store, copied, "em/mask", "em/mask")\nsorted(copied)',  # noqa: E501
            'copied = {key: keys[key] for key in keys if key.startswith("em/mask/")}\nsorted(copied)',  # noqa: E501
            "zarr 2 copies N5's keys, n5zarr Zarr's, which any Zarr reader understands",
        ),
        Row(
            "zarr.consolidate_metadata(root.store)",
            "zarr.consolidate_metadata(root.store)",
            "zarr 2 cannot open what it wrote",
            raises="old",
        ),
        Row(
            'zarr.group(zarr.N5FSStore("memory://b.n5")).create_group("x")\n'
            'cache = zarr.LRUStoreCache(zarr.N5FSStore("memory://b.n5"), max_size=2**20)\n'
            'zarr.open(cache, mode="r")',
            'zarr.group(n5zarr.N5FSStore("memory://b.n5")).create_group("x")\n'
            "cache = n5zarr.CacheOptions(bytes=2**20)\n"
            'zarr.open(n5zarr.N5Store("memory://b.n5", cache=cache, read_only=True), mode="r")',
        ),
    ),
    before_old='import json\nroot = zarr.open(zarr.N5Store("c.n5"))',
    before_new="import json\n"
    'root = zarr.open(n5zarr.N5Store("c.n5"))\n'
    'keys = n5zarr.N5Store("c.n5", zarr_format=2).as_mapping()',
)

GROUPS = Section(
    "Groups and attributes",
    (
        Row('zarr.open_group(store, mode="r")', 'zarr.open_group(store, mode="r")'),
        Row('zarr.open_group(store, mode="r+")', 'zarr.open_group(store, mode="r+")'),
        Row(
            'zarr.open_group(store, mode="a", path="x/y")',
            'zarr.open_group(store, mode="a", path="x/y")',
        ),
        Row(
            'zarr.open_group(store, mode="w", path="em")',
            'zarr.open_group(store, mode="w", path="em")',
        ),
        Row(
            'zarr.open_group(store, mode="w-", path="em")',
            'zarr.open_group(store, mode="w-", path="em")',
            "zarr 3 raises `FileExistsError`, zarr 2 `ValueError`",
            raises="both",
        ),
        Row(
            'zarr.open_group(store, mode="r", path="x")',
            'zarr.open_group(store, mode="r", path="x")',
            raises="both",
        ),
        Row("zarr.group(store)", "zarr.group(store)"),
        Row("zarr.group(store, overwrite=True)", "zarr.group(store, overwrite=True)"),
        Row("zarr.group(store, cache_attrs=False)", "zarr.group(store)"),
        Row(
            "zarr.open_group(store, synchronizer=zarr.ThreadSynchronizer())",
            "zarr.open_group(store)",
        ),
        Row('root.create_group("x/y")', 'root.create_group("x/y")'),
        Row('root.create_group("em", overwrite=True)', 'root.create_group("em", overwrite=True)'),
        Row('root.create_group("em")', 'root.create_group("em")', raises="both"),
        Row('root.create_groups("x", "y")', 'root.require_groups("x", "y")'),
        Row('root.require_group("em")', 'root.require_group("em")'),
        Row('root.require_groups("em", "x")', 'root.require_groups("em", "x")'),
        Row('"em/s0" in root, "x" in root', '"em/s0" in root, "x" in root'),
        Row('root["em"]["s0"]', 'root["em"]["s0"]'),
        Row('root["x"]', 'root["x"]', "zarr 2 shows an empty group where nothing is", raises="new"),
        Row('root.get("x")', 'root.get("x")', "zarr 2 shows an empty group where nothing is"),
        Row("root.em.s0", 'root["em"]["s0"]'),
        Row("list(root)", "list(root)"),
        Row("len(root)", "len(list(root))"),
        Row('sorted(root["em"].keys())', 'sorted(root["em"].keys())'),
        Row('sorted(root["em"].array_keys())', 'sorted(root["em"].array_keys())'),
        Row("sorted(root.group_keys())", "sorted(root.group_keys())"),
        Row('dict(root["em"].arrays())', 'dict(root["em"].arrays())'),
        Row("dict(root.groups())", "dict(root.groups())"),
        Row(
            "found = []\nroot.visit(found.append)\nsorted(found)",
            "sorted(name for name, _ in root.members(max_depth=None))",
            listed=False,
        ),
        Row(
            "found = []\nroot.visititems(lambda name, node: found.append(name))\nsorted(found)",
            "sorted(name for name, node in root.members(max_depth=None))",
        ),
        Row("root.name, root.path, root['em'].name", "root.name, root.path, root['em'].name"),
        Row("root['em'].basename", "root['em'].basename"),
        Row('del root["em/s0"]', 'del root["em/s0"]'),
        Row('root.move("em", "en")', 'Path("c.n5/em").rename("c.n5/en")'),
        Row("root.read_only", "root.read_only"),
        Row("root == zarr.open(store)", "root == zarr.open(store)"),
        Row(
            "with zarr.open(store) as group:\n    x = group.create_group('x')",
            "group = zarr.open(store)\nx = group.create_group('x')",
        ),
        Row('root["em"].attrs["name"]', 'root["em"].attrs["name"]'),
        Row('root["em"].attrs.asdict()', 'root["em"].attrs.asdict()'),
        Row("dict(root.attrs)", "dict(root.attrs)"),
        Row('root["em"].attrs["a"] = {"b": [1, 2.5]}', 'root["em"].attrs["a"] = {"b": [1, 2.5]}'),
        Row(
            'root["em/s0"].attrs.update(a=1, b="x")',
            'root["em/s0"].attrs.update({"a": 1, "b": "x"})',
        ),
        Row('root["em/s0"].attrs.put({"a": 1})', 'root["em/s0"].attrs.put({"a": 1})'),
        Row('del root["em/s0"].attrs["units"]', 'del root["em/s0"].attrs["units"]'),
        Row('root["em"].attrs["x"]', 'root["em"].attrs["x"]', raises="both"),
        Row(
            'root["em/s0"].attrs["dimensions"] = [1]\nroot["em/s0"].attrs["dimensions"]',
            'root["em/s0"].attrs["dimensions"] = [1]\nroot["em/s0"].attrs["dimensions"]',
            "zarr 2 replaced N5's own key, and the array was lost; n5zarr keeps both",
            raises="old",
        ),
        Row('root.attrs["n5"] = "4.0.0"', 'root.attrs["n5"] = "4.0.0"'),
        Row("root.tree() is not None", "root.tree() is not None"),
        Row('root["em/s0"].info is not None', 'root["em/s0"].info is not None'),
    ),
    before_old='store = zarr.N5Store("c.n5")\nroot = zarr.open(store)',
    before_new='store = n5zarr.N5Store("c.n5")\nroot = zarr.open(store)',
)

REMOTE = Section(
    "Servers, and dask",
    (
        Row(
            'zarr.open(zarr.N5FSStore("s3://lab/c.n5", anon=True, client_kwargs=client), mode="r")',
            'zarr.open(n5zarr.N5FSStore("s3://lab/c.n5", anon=True, client_kwargs=client),'
            ' mode="r")',
        ),
        Row(
            'zarr.open(zarr.N5FSStore("s3://lab/c.n5", anon=True, client_kwargs=client),'
            ' mode="r")["em/s0"]',
            'n5zarr.open("s3://lab/c.n5/em/s0", storage_options={"anon": True,'
            ' "client_kwargs": client})',
        ),
        Row(
            "import s3fs\nfs = s3fs.S3FileSystem(anon=True, client_kwargs=client)\n"
            'zarr.open(zarr.N5FSStore("lab/c.n5", fs=fs), mode="r")["em/s0"]',
            "import s3fs\nfs = s3fs.S3FileSystem(anon=True, client_kwargs=client)\n"
            'zarr.open(n5zarr.N5FSStore("lab/c.n5", fs=fs), mode="r")["em/s0"]',
            listed=False,
        ),
        Row(
            'zarr.open(zarr.N5FSStore(f"{server}/lab/c.n5"), mode="r")["em/s0"]',
            'n5zarr.open(f"{server}/lab/c.n5/em/s0")',
        ),
        Row(
            'a = zarr.open(zarr.N5FSStore("c.n5"), mode="r")["em/s0"]\n'
            "da.from_array(a, chunks=a.chunks).sum().compute()",
            'a = n5zarr.open("c.n5/em/s0")\nda.from_array(a, chunks=a.chunks).sum().compute()',
            listed=False,
        ),
        Row(
            'da.from_zarr(zarr.N5Store("c.n5"), component="em/s0").mean().compute()',
            'da.from_zarr(n5zarr.N5Store("c.n5"), component="em/s0").mean().compute()',
        ),
        Row(
            'da.from_array(values, chunks=(2, 3, 4)).to_zarr(zarr.N5Store("c.n5"),'
            ' component="x", compressor=numcodecs.GZip())',
            'da.from_array(values, chunks=(2, 3, 4)).to_zarr(n5zarr.N5Store("c.n5"),'
            ' component="x", compressors=zarr.codecs.GzipCodec())',
        ),
        Row(
            'x = zarr.open(zarr.N5Store("c.n5")).create_dataset("x", shape=values.shape,'
            ' chunks=(2, 3, 4), dtype="u2", compressor=numcodecs.GZip())\n'
            "da.store(da.from_array(values, chunks=(2, 3, 4)), x, lock=False)",
            'x = n5zarr.create_array("c.n5/x", shape=values.shape,'
            ' chunks=(2, 3, 4), dtype="u2", compression="gzip")\n'
            "da.store(da.from_array(values, chunks=(2, 3, 4)), x, lock=False)",
            listed=False,
        ),
    ),
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
