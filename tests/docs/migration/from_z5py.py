"""List rows of z5py: files, groups, datasets and attributes."""

from __future__ import annotations

from tests.docs.migration.model import Library, Row, Section

__all__ = ["Z5PY"]

FILES = Section(
    "Files",
    """
- z5py.File("c.n5")
+ n5zarr.open("c.n5")
- z5py.File("c.n5", "r")
+ n5zarr.open("c.n5", "r")
- z5py.File("c.n5", "x")
+ n5zarr.open("c.n5", "w-")
! both
- z5py.File("c.n5", use_zarr_format=False)
+ n5zarr.open("c.n5")
- z5py.N5File("c.n5")
+ n5zarr.open("c.n5")
- z5py.File.infer_format("c.n5")
# n5zarr opens N5 only, and says what else it found
- with z5py.File("c.n5", "a") as file:
-     group = file.create_group("x")
+ file = n5zarr.open("c.n5", "a")
+ group = file.create_group("x")
- z5py.File("c.n5").close()
+ n5zarr.open("c.n5").store.close()
- z5py.File("c.n5").filename
+ n5zarr.open("c.n5").store.root.name
- z5py.File("c.n5").attrs["n5"]
+ json.loads(Path("c.n5/attributes.json").read_text())["n5"]
- z5py.File("d.n5", "a").attrs["n5"]
+ n5zarr.open("d.n5", "a")
+ json.loads(Path("d.n5/attributes.json").read_text())["n5"]
# another version of the format is stated; both are compatible
""",
    others="""
- z5py.File("c.n5", "r+")
+ n5zarr.open("c.n5", "r+")
- z5py.File("c.n5", "a").create_group("x")
+ n5zarr.open("c.n5", "a").create_group("x")
- z5py.File("c.n5", "w")
+ n5zarr.open("c.n5", "w")
- z5py.File("c.n5", "w-")
+ n5zarr.open("c.n5", "w-")
! both
- z5py.File("d.n5", "r")
+ n5zarr.open("d.n5", "r")
! both
- z5py.File("d.n5", "a")
+ n5zarr.open("d.n5", "a")
- z5py.File("data", "a", use_zarr_format=False).create_group("x")
+ n5zarr.open("data", "a").create_group("x")
- z5py.File(Path("c.n5"))
+ n5zarr.open(Path("c.n5"))
- z5py.File("c.n5").name
+ n5zarr.open("c.n5").name
- z5py.File("d.n5", "a", dimension_separator="/").create_group("x")
+ n5zarr.open("d.n5", "a").create_group("x")
- z5py.File("d.n5", "a", zarr_format=2).create_group("x")
+ n5zarr.open("d.n5", "a").create_group("x")
- import pickle
- pickle.loads(pickle.dumps(z5py.File("c.n5")))
+ import pickle
+ pickle.loads(pickle.dumps(n5zarr.open("c.n5")))
""",
    before_old="import json",
    before_new="import json",
)

GROUPS = Section(
    "Groups",
    """
= file["em/s0"]
= file["em"]["s0"]
= file["x"]
! both
= file.get("x")
= "em/s0" in file, "x" in file
= sorted(file['em'])
- len(file['em'])
+ len(list(file['em']))
= sorted(file['em'].keys())
- sorted(name for name, node in file['em'].items())
+ sorted(name for name, node in file['em'].members())
- [node.shape for node in file['em'].values()]
+ [node.shape for node in file['em'].array_values()]
= file.create_group("x/y")
= file.create_group("em")
! both: zarr raises `ContainsGroupError`, a `ValueError`; z5py `KeyError`
= file.require_group("em")
= file.require_group("x")
= file.require_group("em/s0")
! both
= del file["em/s0"]
- file.is_sub_group("em"), file.is_sub_group("em/s0")
+ isinstance(file["em"], zarr.Group), isinstance(file["em/s0"], zarr.Group)
- found = []
- file.visititems(lambda name, node: found.append(name))
- sorted(found)
+ sorted(name for name, node in file.members(max_depth=None))
= file['em'].name
- file['em'].parent.name
+ file['em'].name.rpartition('/')[0] or '/'
- file['em'].file.filename == file.filename
+ file['em'].store == file.store
- file['em'].is_zarr
+ not isinstance(file['em'].store, n5zarr.N5Store)
""",
    others="""
- file.visititems(lambda name, node: name if 's0' in name else None)
+ next(name for name, node in file.members(max_depth=None) if 's0' in name)
""",
    before_old='file = z5py.File("c.n5", "a")',
    before_new='file = n5zarr.open("c.n5", "a")',
)

GIVEN = 'given = {"data": values, "chunks": (2, 3, 4)}'
CREATING = Section(
    "Creating datasets",
    """
- file.create_dataset("x", shape=(5, 6), dtype="uint16", chunks=(2, 3))
+ n5zarr.create_array("c.n5/x", shape=(5, 6), dtype="uint16", chunks=(2, 3))
- file.create_dataset("x", data=values, n_threads=2)
+ n5zarr.create_array("c.n5/x", data=values, chunks=(5, 6, 7))
- file.create_dataset("x", shape=(200, 300, 400), dtype="uint16").chunks
+ n5zarr.create_array("c.n5/x", shape=(200, 300, 400), dtype="uint16", chunk_elements=64**3).chunks
- file.create_dataset("x", **given, compression="raw")
+ n5zarr.create_array("c.n5/x", **given, compression="raw")
- file.create_dataset("x", **given, compression="gzip")
+ n5zarr.create_array("c.n5/x", **given, compression="gzip")
- file.create_dataset("x", **given, compression="gzip", level=3)
+ n5zarr.create_array("c.n5/x", **given, compression={"type": "gzip", "level": 3})
- file.create_dataset("x", **given, compression="gzip", useZlib=True)
+ n5zarr.create_array("c.n5/x", **given, compression={"type": "gzip", "useZlib": True})
! old: z5py reads `useZlib` and cannot write it
- file.create_dataset("x", **given, compression="bzip2", level=5)
+ n5zarr.create_array("c.n5/x", **given, compression={"type": "bzip2", "blockSize": 5})
- file.create_dataset("x", **given, compression="xz", level=6)
+ n5zarr.create_array("c.n5/x", **given, compression={"type": "xz", "preset": 6})
- file.create_dataset("x", **given, compression="zstd", level=3)
+ n5zarr.create_array("c.n5/x", **given, compression={"type": "zstd", "level": 3})
- file.create_dataset("x", **given, compression="blosc", codec="zstd", clevel=4, shuffle=2)
+ n5zarr.create_array("c.n5/x", **given, compression={"type": "blosc", "cname": "zstd", "clevel": \
4, "shuffle": 2})
- file.create_dataset("x", **given, compression="lz4")
- b"LZ4Block" in Path("c.n5/x/0/0/0").read_bytes()
+ n5zarr.create_array("c.n5/x", **given, compression="lz4")
+ b"LZ4Block" in Path("c.n5/x/0/0/0").read_bytes()
# z5py names bare LZ4 data `lz4`; n5zarr writes Java's format, and reads both
- file.create_dataset("x", data=values.astype(bool))
+ n5zarr.create_array("c.n5/x", data=values.astype(bool), chunks=(5, 6, 7))
! old: z5py refuses bool; n5zarr writes uint8, and keeps for Zarr that it is bool
- file.create_dataset("x", shape=(5,), dtype="uint8", fillvalue=7)
- z5py.File("c.n5")["x"][:]
+ n5zarr.create_array("c.n5/x", shape=(5,), dtype="uint8", fill_value=7)
+ n5zarr.open("c.n5")["x"][:]
# N5 has no fill value: z5py drops it; n5zarr keeps it for Zarr
- file.create_dataset("em/s0", shape=(5,), dtype="uint8")
+ n5zarr.create_array("c.n5/em/s0", shape=(5,), dtype="uint8")
! both: zarr raises `ContainsArrayError`, a `ValueError`; z5py `KeyError`
- file.require_dataset("em/s0", shape=(5, 6, 7), dtype="uint16", chunks=(2, 3, 4))
+ file.require_array("em/s0", shape=(5, 6, 7), dtype="uint16")
- file.create_dataset("x", shape=(4, 6), dtype="uint16", chunks=(2, 3), shards=(4, 6))
+ file.create_array("x", shape=(4, 6), dtype="uint16", chunks=(2, 3), shards=(4, 6))
! old: N5 has no shards: z5py refuses them; n5zarr writes them as bytes for Zarr
""",
    others="""
- file.create_dataset("x", **given)
+ n5zarr.create_array("c.n5/x", **given)
- file.create_dataset("x", shape=(200, 300), dtype="uint8").chunks
+ n5zarr.create_array("c.n5/x", shape=(200, 300), dtype="uint8").chunks
- file.require_dataset("em/s0", shape=(5, 6, 8), dtype="uint16", chunks=(2, 3, 4))
+ file.require_array("em/s0", shape=(5, 6, 8), dtype="uint16")
! both
- file.require_dataset("x", shape=(5, 6), dtype="uint16", chunks=(2, 3))
+ file.require_array("x", shape=(5, 6), dtype="uint16", chunks=(2, 3), \
compressors=zarr.codecs.GzipCodec())
""",
    more=tuple(
        Row(
            f'file.create_dataset("x", data=values.astype("{name}"), chunks=(5, 6, 7))',
            f'n5zarr.create_array("c.n5/x", data=values.astype("{name}"), chunks=(5, 6, 7))',
            listed=False,
        )
        for name in ("int8", "uint8", "int32", "uint64", "float32", "float64")
    ),
    before_old='file = z5py.File("c.n5", "a")\n' + GIVEN,
    before_new='file = n5zarr.open("c.n5", "a")\n' + GIVEN,
)

SAME = (
    "ds[:]", "ds[...]", "ds[1:4, 2]", "ds[-1]", "ds[1, 2, 3]", "ds[..., 2]", "ds[1:3, 2:5, :]",
    "np.asarray(ds)", "ds.shape", "ds.ndim", "ds.size", "ds.chunks", "ds.dtype",
    "ds[:] = values[::-1]", "ds[1:3, 2:5] = 7", "ds[1, 2, 3] = 9", "ds[0] = values[4]",
    "ds[:] = 5", "ds.name",
)  # fmt: skip

ELEMENTS = Section(
    "Reading and writing elements",
    """
= ds[::2]
! old: z5py refuses steps
= ds[[0, 2]]
! old: z5py refuses lists
= ds[9]
! both: zarr raises `IndexError`, z5py `ValueError`
- len(ds)
+ ds.shape[0]
- ds.number_of_chunks
+ ds.nchunks
- ds.chunks_per_dimension
+ ds.cdata_shape
- ds.compression
+ n5zarr.get_attribute('c.n5', 'em/s0', 'compression/type')
- ds.compression_opts
+ n5zarr.get_attribute('c.n5', 'em/s0', 'compression')
# z5py gives the members without the type, under names of its own
= ds.shards
- import pickle
- pickle.loads(pickle.dumps(ds))
+ import pickle
+ pickle.loads(pickle.dumps(ds))
- ds.is_zarr
+ not isinstance(ds.store, n5zarr.N5Store)
- ds.parent.name
+ ds.name.rpartition('/')[0]
# z5py gives the group from which the dataset was opened
- ds.file.filename == file.filename
+ ds.store == file.store
- ds.index_to_roi(np.s_[1:3, :, 2])
# a helper of z5py itself; numpy's and zarr's indices need none
- out = np.zeros((5, 6, 7), 'u2')
- ds.read_direct(out)
- out
+ out = np.zeros((5, 6, 7), 'u2')
+ out[...] = ds[...]
+ out
- ds.write_direct(values[::-1].copy())
+ ds[...] = values[::-1]
- ds.write_direct(values, np.s_[0:2, :, :], np.s_[3:5, 0:6, 0:7])
+ ds[3:5, 0:6, 0:7] = values[0:2]
- ds.read_subarray((1, 2, 3), (3, 5, 7))
+ ds[1:3, 2:5, 3:7]
- ds.write_subarray((1, 2, 3), np.ones((2, 3, 4), 'u2'))
+ ds[1:3, 2:5, 3:7] = np.ones((2, 3, 4), 'u2')
""",
    others="""
- ds.n_threads = 4
- ds[:]
+ ds[:]
- ds.n_threads = 2
- ds[:] = 5
+ with zarr.config.set({'async.concurrency': 2}):
+     ds[:] = 5
- out = np.zeros((9, 9), 'u2')
- ds.read_direct(out, np.s_[1:2, 2:4, 0:7], np.s_[:2, :7])
- out
+ out = np.zeros((9, 9), 'u2')
+ out[:2, :7] = ds[1, 2:4, 0:7]
+ out
- ds[:2, :3, :4] = 0
- ds.chunk_exists((0, 0, 0))
+ ds[:2, :3, :4] = 0
+ n5zarr.read_block('c.n5', 'em/s0', (0, 0, 0)) is not None
""",
    same=SAME,
    before_old='file = z5py.File("c.n5", "a")\nds = file["em/s0"]',
    before_new='file = n5zarr.open("c.n5", "a")\nds = file["em/s0"]',
)

BLOCKS = Section(
    "Blocks",
    """
- ds.chunk_exists((0, 1, 1)), ds.chunk_exists((2, 1, 1))
+ exists(1, 1, 0), exists(1, 1, 2)
- ds.read_chunk((2, 0, 1))
+ block = n5zarr.read_block('c.n5', 'em/s0', (1, 0, 2))
+ block.data.reshape(block.header.block_shape[::-1])
- ds.write_chunk((0, 0, 0), np.full((2, 3, 4), 7, 'u2'))
+ ds.blocks[0, 0, 0] = np.full((2, 3, 4), 7, 'u2')
- ds.write_chunk((2, 1, 1), np.full((1, 3, 3), 7, 'u2'))
+ n5zarr.write_block('c.n5', 'em/s0', (1, 1, 2), np.full((1, 3, 3), 7, 'u2'))
- ds.get_chunk_shape((2, 0, 1), from_header=True)
+ n5zarr.read_block('c.n5', 'em/s0', (1, 0, 2)).header.block_shape[::-1]
- ds.write_chunk((0, 0, 0), np.arange(5, dtype='u2'), True)
- ds.read_chunk((0, 0, 0))
+ n5zarr.write_block('c.n5', 'em/s0', (0, 0, 0), np.arange(5, dtype='u2'), block_shape=(4, 3, 2))
+ n5zarr.read_block('c.n5', 'em/s0', (0, 0, 0)).data
""",
    others="""
- ds.read_chunk((0, 1, 1))
+ n5zarr.read_block('c.n5', 'em/s0', (1, 1, 0)).data.reshape(2, 3, 3)
- ds.read_chunk((2, 1, 1))
+ n5zarr.read_block('c.n5', 'em/s0', (1, 1, 2))
- ds.get_chunk_shape((2, 1, 1))
+ ds[4:6, 3:6, 4:8].shape
""",
    before_old='ds = z5py.File("c.n5", "a")["em/s0"]',
    before_new='ds = n5zarr.open("c.n5", "a")["em/s0"]\n\n'
    "def exists(*position):\n"
    "    return n5zarr.read_block('c.n5', 'em/s0', position) is not None",
)

ATTRIBUTES = Section(
    "Attributes",
    """
= file["em"].attrs["name"]
= file["em"].attrs["x"]
! both
= file["em"].attrs.get("x", 1)
= file["em"].attrs["a"] = {"b": [1, 2.5]}
= file["em/s0"].attrs["a"] = "ü"
= file["em"].attrs.update({"a": 1, "b": 2})
- file["em/s0"].attrs.update(a=1)
+ file["em/s0"].attrs.update({"a": 1})
= del file["em"].attrs["name"]
= "name" in file["em"].attrs
= sorted(file["em/s0"].attrs)
= len(file["em"].attrs)
= dict(file["em"].attrs)
- file["em/s0"].attrs["dimensions"]
+ n5zarr.get_attribute("c.n5", "em/s0", "dimensions")
! old: z5py does not show N5's own keys
= file["em/s0"].attrs["dimensions"] = [1, 2, 3]
! old: z5py refuses names of N5's own keys; n5zarr keeps such an attribute beside them
- z5py.set_json_encoder(json.JSONEncoder)
# zarr writes JSON itself; give attributes that JSON has
- z5py.set_json_decoder(json.JSONDecoder)
# n5zarr reads JSON as leniently as Java does
""",
    before_old='import json\nfile = z5py.File("c.n5", "a")',
    before_new='file = n5zarr.open("c.n5", "a")',
)

Z5PY = Library(
    name="z5py",
    page="z5py",
    before_old="import z5py",
    before_new="import n5zarr, zarr",
    sections=(FILES, GROUPS, CREATING, ELEMENTS, BLOCKS, ATTRIBUTES),
)
