"""List rows of z5py: files, groups, datasets and attributes."""

from __future__ import annotations

from tests.docs.migration.model import Library, Row, Section

__all__ = ["Z5PY"]

FILES = Section(
    "Files",
    (
        Row('z5py.File("c.n5")', 'n5zarr.open("c.n5")'),
        Row('z5py.File("c.n5", "r")', 'n5zarr.open("c.n5", "r")'),
        Row('z5py.File("c.n5", "r+")', 'n5zarr.open("c.n5", "r+")', listed=False),
        Row(
            'z5py.File("c.n5", "a").create_group("x")',
            'n5zarr.open("c.n5", "a").create_group("x")',
            listed=False,
        ),
        Row('z5py.File("c.n5", "w")', 'n5zarr.open("c.n5", "w")', listed=False),
        Row('z5py.File("c.n5", "w-")', 'n5zarr.open("c.n5", "w-")', raises="both", listed=False),
        Row('z5py.File("c.n5", "x")', 'n5zarr.open("c.n5", "w-")', raises="both"),
        Row('z5py.File("d.n5", "r")', 'n5zarr.open("d.n5", "r")', raises="both", listed=False),
        Row('z5py.File("d.n5", "a")', 'n5zarr.open("d.n5", "a")', listed=False),
        Row('z5py.File("c.n5", use_zarr_format=False)', 'n5zarr.open("c.n5")'),
        Row(
            'z5py.File("data", "a", use_zarr_format=False).create_group("x")',
            'n5zarr.open("data", "a").create_group("x")',
            listed=False,
        ),
        Row('z5py.N5File("c.n5")', 'n5zarr.open("c.n5")'),
        Row('z5py.File(Path("c.n5"))', 'n5zarr.open(Path("c.n5"))', listed=False),
        Row(
            'z5py.File.infer_format("c.n5")',
            "",
            "n5zarr opens N5 only, and says what else it found",
        ),
        Row(
            'with z5py.File("c.n5", "a") as file:\n    group = file.create_group("x")',
            'file = n5zarr.open("c.n5", "a")\ngroup = file.create_group("x")',
        ),
        Row('z5py.File("c.n5").close()', 'n5zarr.open("c.n5").store.close()'),
        Row('z5py.File("c.n5").filename', 'n5zarr.open("c.n5").store.root.name'),
        Row('z5py.File("c.n5").name', 'n5zarr.open("c.n5").name', listed=False),
        Row(
            'z5py.File("c.n5").attrs["n5"]',
            'json.loads(Path("c.n5/attributes.json").read_text())["n5"]',
        ),
        Row(
            'z5py.File("d.n5", "a").attrs["n5"]',
            'n5zarr.open("d.n5", "a")\njson.loads(Path("d.n5/attributes.json").read_text())["n5"]',
            "another version of the format is stated; both are compatible",
        ),
        Row(
            'z5py.File("d.n5", "a", dimension_separator="/").create_group("x")',
            'n5zarr.open("d.n5", "a").create_group("x")',
            listed=False,
        ),
        Row(
            'z5py.File("d.n5", "a", zarr_format=2).create_group("x")',
            'n5zarr.open("d.n5", "a").create_group("x")',
            listed=False,
        ),
        Row(
            'import pickle\npickle.loads(pickle.dumps(z5py.File("c.n5")))',
            'import pickle\npickle.loads(pickle.dumps(n5zarr.open("c.n5")))',
            listed=False,
        ),
    ),
    before_old="import json",
    before_new="import json",
)

GROUPS = Section(
    "Groups",
    (
        Row('file["em/s0"]', 'file["em/s0"]'),
        Row('file["em"]["s0"]', 'file["em"]["s0"]'),
        Row('file["x"]', 'file["x"]', raises="both"),
        Row('file.get("x")', 'file.get("x")'),
        Row('"em/s0" in file, "x" in file', '"em/s0" in file, "x" in file'),
        Row("sorted(file['em'])", "sorted(file['em'])"),
        Row("len(file['em'])", "len(list(file['em']))"),
        Row("sorted(file['em'].keys())", "sorted(file['em'].keys())"),
        Row(
            "sorted(name for name, node in file['em'].items())",
            "sorted(name for name, node in file['em'].members())",
        ),
        Row(
            "[node.shape for node in file['em'].values()]",
            "[node.shape for node in file['em'].array_values()]",
        ),
        Row('file.create_group("x/y")', 'file.create_group("x/y")'),
        Row(
            'file.create_group("em")',
            'file.create_group("em")',
            "zarr raises `ContainsGroupError`, a `ValueError`; z5py `KeyError`",
            raises="both",
        ),
        Row('file.require_group("em")', 'file.require_group("em")'),
        Row('file.require_group("x")', 'file.require_group("x")'),
        Row('file.require_group("em/s0")', 'file.require_group("em/s0")', raises="both"),
        Row('del file["em/s0"]', 'del file["em/s0"]'),
        Row(
            'file.is_sub_group("em"), file.is_sub_group("em/s0")',
            'isinstance(file["em"], zarr.Group), isinstance(file["em/s0"], zarr.Group)',
        ),
        Row(
            "found = []\nfile.visititems(lambda name, node: found.append(name))\nsorted(found)",
            "sorted(name for name, node in file.members(max_depth=None))",
        ),
        Row(
            "file.visititems(lambda name, node: name if 's0' in name else None)",
            "next(name for name, node in file.members(max_depth=None) if 's0' in name)",
            listed=False,
        ),
        Row("file['em'].name", "file['em'].name"),
        Row("file['em'].parent.name", "file['em'].name.rpartition('/')[0] or '/'"),
        Row("file['em'].file.filename == file.filename", "file['em'].store == file.store"),
        Row("file['em'].is_zarr", "not isinstance(file['em'].store, n5zarr.N5Store)"),
    ),
    before_old='file = z5py.File("c.n5", "a")',
    before_new='file = n5zarr.open("c.n5", "a")',
)

GIVEN = 'given = {"data": values, "chunks": (2, 3, 4)}'
CREATE_OLD = 'file.create_dataset("x", **given, '
CREATE_NEW = 'n5zarr.create_array("c.n5/x", **given, '


def compressed(old: str, new: str, why: str = "") -> Row:
    return Row(f"{CREATE_OLD}compression={old})", f"{CREATE_NEW}compression={new})", why)


CREATING = Section(
    "Creating datasets",
    (
        Row(
            'file.create_dataset("x", shape=(5, 6), dtype="uint16", chunks=(2, 3))',
            'n5zarr.create_array("c.n5/x", shape=(5, 6), dtype="uint16", chunks=(2, 3))',
        ),
        Row(
            'file.create_dataset("x", **given)',
            'n5zarr.create_array("c.n5/x", **given)',
            listed=False,
        ),
        Row(
            'file.create_dataset("x", data=values, n_threads=2)',
            'n5zarr.create_array("c.n5/x", data=values, chunks=(5, 6, 7))',
        ),
        Row(
            'file.create_dataset("x", shape=(200, 300, 400), dtype="uint16").chunks',
            'n5zarr.create_array("c.n5/x", shape=(200, 300, 400), dtype="uint16",'
            " chunk_elements=64**3).chunks",
        ),
        Row(
            'file.create_dataset("x", shape=(200, 300), dtype="uint8").chunks',
            'n5zarr.create_array("c.n5/x", shape=(200, 300), dtype="uint8").chunks',
            listed=False,
        ),
        compressed('"raw"', '"raw"'),
        compressed('"gzip"', '"gzip"'),
        compressed('"gzip", level=3', '{"type": "gzip", "level": 3}'),
        Row(
            CREATE_OLD + 'compression="gzip", useZlib=True)',
            CREATE_NEW + 'compression={"type": "gzip", "useZlib": True})',
            "z5py reads `useZlib` and cannot write it",
            raises="old",
        ),
        compressed('"bzip2", level=5', '{"type": "bzip2", "blockSize": 5}'),
        compressed('"xz", level=6', '{"type": "xz", "preset": 6}'),
        compressed('"zstd", level=3', '{"type": "zstd", "level": 3}'),
        compressed(
            '"blosc", codec="zstd", clevel=4, shuffle=2',
            '{"type": "blosc", "cname": "zstd", "clevel": 4, "shuffle": 2}',
        ),
        Row(
            CREATE_OLD + 'compression="lz4")\nb"LZ4Block" in Path("c.n5/x/0/0/0").read_bytes()',
            CREATE_NEW + 'compression="lz4")\nb"LZ4Block" in Path("c.n5/x/0/0/0").read_bytes()',
            "z5py names bare LZ4 data `lz4`; n5zarr writes Java's format, and reads both",
        ),
        *(
            Row(
                f'file.create_dataset("x", data=values.astype("{name}"), chunks=(5, 6, 7))',
                f'n5zarr.create_array("c.n5/x", data=values.astype("{name}"), chunks=(5, 6, 7))',
                listed=False,
            )
            for name in ("int8", "uint8", "int32", "uint64", "float32", "float64")
        ),
        Row(
            'file.create_dataset("x", data=values.astype(bool))',
            'n5zarr.create_array("c.n5/x", data=values.astype(bool), chunks=(5, 6, 7))',
            "z5py refuses bool; n5zarr writes uint8, and keeps for Zarr that it is bool",
            raises="old",
        ),
        Row(
            'file.create_dataset("x", shape=(5,), dtype="uint8", fillvalue=7)\n'
            'z5py.File("c.n5")["x"][:]',
            'n5zarr.create_array("c.n5/x", shape=(5,), dtype="uint8", fill_value=7)\n'
            'n5zarr.open("c.n5")["x"][:]',
            "N5 has no fill value: z5py drops it; n5zarr keeps it for Zarr",
        ),
        Row(
            'file.create_dataset("em/s0", shape=(5,), dtype="uint8")',
            'n5zarr.create_array("c.n5/em/s0", shape=(5,), dtype="uint8")',
            "zarr raises `ContainsArrayError`, a `ValueError`; z5py `KeyError`",
            raises="both",
        ),
        Row(
            'file.require_dataset("em/s0", shape=(5, 6, 7), dtype="uint16", chunks=(2, 3, 4))',
            'file.require_array("em/s0", shape=(5, 6, 7), dtype="uint16")',
        ),
        Row(
            'file.require_dataset("em/s0", shape=(5, 6, 8), dtype="uint16", chunks=(2, 3, 4))',
            'file.require_array("em/s0", shape=(5, 6, 8), dtype="uint16")',
            raises="both",
            listed=False,
        ),
        Row(
            'file.require_dataset("x", shape=(5, 6), dtype="uint16", chunks=(2, 3))',
            'file.require_array("x", shape=(5, 6), dtype="uint16", chunks=(2, 3),'
            " compressors=zarr.codecs.GzipCodec())",
            listed=False,
        ),
        Row(
            'file.create_dataset("x", shape=(4, 6), dtype="uint16", chunks=(2, 3), shards=(4, 6))',
            'file.create_array("x", shape=(4, 6), dtype="uint16", chunks=(2, 3), shards=(4, 6))',
            "N5 has no shards: z5py refuses them; n5zarr writes them as bytes for Zarr",
            raises="old",
        ),
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
    (
        *(Row(line, line) for line in SAME),
        Row("ds[::2]", "ds[::2]", "z5py refuses steps", raises="old"),
        Row("ds[[0, 2]]", "ds[[0, 2]]", "z5py refuses lists", raises="old"),
        Row("ds[9]", "ds[9]", "zarr raises `IndexError`, z5py `ValueError`", raises="both"),
        Row("len(ds)", "ds.shape[0]"),
        Row("ds.n_threads = 4\nds[:]", "ds[:]", listed=False),
        Row(
            "ds.n_threads = 2\nds[:] = 5",
            "with zarr.config.set({'async.concurrency': 2}):\n    ds[:] = 5",
            listed=False,
        ),
        Row("ds.number_of_chunks", "ds.nchunks"),
        Row("ds.chunks_per_dimension", "ds.cdata_shape"),
        Row("ds.compression", "n5zarr.get_attribute('c.n5', 'em/s0', 'compression/type')"),
        Row(
            "ds.compression_opts",
            "n5zarr.get_attribute('c.n5', 'em/s0', 'compression')",
            "z5py gives the members without the type, under names of its own",
        ),
        Row("ds.shards", "ds.shards"),
        Row(
            "import pickle\npickle.loads(pickle.dumps(ds))",
            "import pickle\npickle.loads(pickle.dumps(ds))",
        ),
        Row("ds.is_zarr", "not isinstance(ds.store, n5zarr.N5Store)"),
        Row(
            "ds.parent.name",
            "ds.name.rpartition('/')[0]",
            "z5py gives the group from which the dataset was opened",
        ),
        Row("ds.file.filename == file.filename", "ds.store == file.store"),
        Row(
            "ds.index_to_roi(np.s_[1:3, :, 2])",
            "",
            "a helper of z5py itself; numpy's and zarr's indices need none",
        ),
        Row(
            "out = np.zeros((5, 6, 7), 'u2')\nds.read_direct(out)\nout",
            "out = np.zeros((5, 6, 7), 'u2')\nout[...] = ds[...]\nout",
        ),
        Row(
            "out = np.zeros((9, 9), 'u2')\n"
            "ds.read_direct(out, np.s_[1:2, 2:4, 0:7], np.s_[:2, :7])\nout",
            "out = np.zeros((9, 9), 'u2')\nout[:2, :7] = ds[1, 2:4, 0:7]\nout",
            listed=False,
        ),
        Row("ds.write_direct(values[::-1].copy())", "ds[...] = values[::-1]"),
        Row(
            "ds.write_direct(values, np.s_[0:2, :, :], np.s_[3:5, 0:6, 0:7])",
            "ds[3:5, 0:6, 0:7] = values[0:2]",
        ),
        Row("ds.read_subarray((1, 2, 3), (3, 5, 7))", "ds[1:3, 2:5, 3:7]"),
        Row(
            "ds.write_subarray((1, 2, 3), np.ones((2, 3, 4), 'u2'))",
            "ds[1:3, 2:5, 3:7] = np.ones((2, 3, 4), 'u2')",
        ),
        Row(
            "ds[:2, :3, :4] = 0\nds.chunk_exists((0, 0, 0))",
            "ds[:2, :3, :4] = 0\nn5zarr.read_block('c.n5', 'em/s0', (0, 0, 0)) is not None",
            listed=False,
        ),
    ),
    before_old='file = z5py.File("c.n5", "a")\nds = file["em/s0"]',
    before_new='file = n5zarr.open("c.n5", "a")\nds = file["em/s0"]',
)

BLOCKS = Section(
    "Blocks",
    (
        Row(
            "ds.chunk_exists((0, 1, 1)), ds.chunk_exists((2, 1, 1))",
            "exists(1, 1, 0), exists(1, 1, 2)",
        ),
        Row(
            "ds.read_chunk((0, 1, 1))",
            "n5zarr.read_block('c.n5', 'em/s0', (1, 1, 0)).data.reshape(2, 3, 3)",
            listed=False,
        ),
        Row(
            "ds.read_chunk((2, 0, 1))",
            "block = n5zarr.read_block('c.n5', 'em/s0', (1, 0, 2))\n"
            "block.data.reshape(block.header.block_shape[::-1])",
        ),
        Row(
            "ds.read_chunk((2, 1, 1))",
            "n5zarr.read_block('c.n5', 'em/s0', (1, 1, 2))",
            listed=False,
        ),
        Row(
            "ds.write_chunk((0, 0, 0), np.full((2, 3, 4), 7, 'u2'))",
            "ds.blocks[0, 0, 0] = np.full((2, 3, 4), 7, 'u2')",
        ),
        Row(
            "ds.write_chunk((2, 1, 1), np.full((1, 3, 3), 7, 'u2'))",
            "n5zarr.write_block('c.n5', 'em/s0', (1, 1, 2), np.full((1, 3, 3), 7, 'u2'))",
        ),
        Row("ds.get_chunk_shape((2, 1, 1))", "ds[4:6, 3:6, 4:8].shape", listed=False),
        Row(
            "ds.get_chunk_shape((2, 0, 1), from_header=True)",
            "n5zarr.read_block('c.n5', 'em/s0', (1, 0, 2)).header.block_shape[::-1]",
        ),
        Row(
            "ds.write_chunk((0, 0, 0), np.arange(5, dtype='u2'), True)\nds.read_chunk((0, 0, 0))",
            "n5zarr.write_block('c.n5', 'em/s0', (0, 0, 0), np.arange(5, dtype='u2'),"
            " block_shape=(4, 3, 2))\n"
            "n5zarr.read_block('c.n5', 'em/s0', (0, 0, 0)).data",
        ),
    ),
    before_old='ds = z5py.File("c.n5", "a")["em/s0"]',
    before_new='ds = n5zarr.open("c.n5", "a")["em/s0"]\n\n'
    "def exists(*position):\n"
    "    return n5zarr.read_block('c.n5', 'em/s0', position) is not None",
)

ATTRIBUTES = Section(
    "Attributes",
    (
        Row('file["em"].attrs["name"]', 'file["em"].attrs["name"]'),
        Row('file["em"].attrs["x"]', 'file["em"].attrs["x"]', raises="both"),
        Row('file["em"].attrs.get("x", 1)', 'file["em"].attrs.get("x", 1)'),
        Row('file["em"].attrs["a"] = {"b": [1, 2.5]}', 'file["em"].attrs["a"] = {"b": [1, 2.5]}'),
        Row('file["em/s0"].attrs["a"] = "ü"', 'file["em/s0"].attrs["a"] = "ü"'),
        Row(
            'file["em"].attrs.update({"a": 1, "b": 2})', 'file["em"].attrs.update({"a": 1, "b": 2})'
        ),
        Row('file["em/s0"].attrs.update(a=1)', 'file["em/s0"].attrs.update({"a": 1})'),
        Row('del file["em"].attrs["name"]', 'del file["em"].attrs["name"]'),
        Row('"name" in file["em"].attrs', '"name" in file["em"].attrs'),
        Row('sorted(file["em/s0"].attrs)', 'sorted(file["em/s0"].attrs)'),
        Row('len(file["em"].attrs)', 'len(file["em"].attrs)'),
        Row('dict(file["em"].attrs)', 'dict(file["em"].attrs)'),
        Row(
            'file["em/s0"].attrs["dimensions"]',
            'n5zarr.get_attribute("c.n5", "em/s0", "dimensions")',
            "z5py does not show N5's own keys",
            raises="old",
        ),
        Row(
            'file["em/s0"].attrs["dimensions"] = [1, 2, 3]',
            'file["em/s0"].attrs["dimensions"] = [1, 2, 3]',
            "z5py refuses names of N5's own keys; n5zarr keeps such an attribute beside them",
            raises="old",
        ),
        Row(
            "z5py.set_json_encoder(json.JSONEncoder)",
            "",
            "zarr writes JSON itself; give attributes that JSON has",
        ),
        Row(
            "z5py.set_json_decoder(json.JSONDecoder)",
            "",
            "n5zarr reads JSON as leniently as Java does",
        ),
    ),
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
