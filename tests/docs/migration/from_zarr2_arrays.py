"""List rows of zarr-python 2: creating, reading and writing arrays, and its block codec."""

from __future__ import annotations

from tests.docs.migration.model import Row, Section

__all__ = ["CREATING", "ELEMENTS", "WRAPPER"]

EMPTY = "zarr 3 leaves out chunks that hold only the fill value"
OF_ROOT = (
    'store = zarr.N5Store("c.n5")\nroot = zarr.open(store)',
    'store = n5zarr.N5Store("c.n5")\nroot = zarr.open(store)',
)
GIVEN = 'given = {"data": values, "chunks": (2, 3, 4)}'


def compressor(old: str, new: str, why: str = "") -> Row:
    return Row(
        f'root.create_dataset("x", **given, compressor={old})',
        f'n5zarr.create_array(store, path="x", **given, compression={new})',
        why,
    )


CREATING = Section(
    "Creating arrays",
    (
        Row(
            'root.create_dataset("x", shape=(5, 6), chunks=(2, 3), dtype="u2")',
            'root.create_array("x", shape=(5, 6), chunks=(2, 3), dtype="u2")',
            "zarr 3 compresses with zstd by default, zarr 2 with blosc",
        ),
        Row(
            'root.create_dataset("x", shape=(5, 6), chunks=(2, 3), dtype="u2",'
            " compressor=numcodecs.GZip(5))",
            'root.create_array("x", shape=(5, 6), chunks=(2, 3), dtype="u2",'
            " compressors=zarr.codecs.GzipCodec(level=5))",
        ),
        Row(
            'root.create_dataset("x", shape=(5, 6), chunks=(2, 3), dtype="u2", compression="gzip")',
            'n5zarr.create_array(store, path="x", shape=(5, 6), chunks=(2, 3), dtype="u2",'
            ' compression="gzip")',
            listed=False,
        ),
        Row(
            'root.create_dataset("x", shape=(5, 6), chunks=(2, 3), dtype="u2",'
            ' compression="gzip", compression_opts=3)',
            'n5zarr.create_array(store, path="x", shape=(5, 6), chunks=(2, 3), dtype="u2",'
            ' compression={"type": "gzip", "level": 3})',
        ),
        compressor("None", '"raw"'),
        compressor("numcodecs.GZip(1)", '{"type": "gzip", "level": 1}'),
        compressor("numcodecs.Zlib(1)", '{"type": "gzip", "level": 1, "useZlib": True}'),
        compressor("numcodecs.BZ2(9)", '{"type": "bzip2", "blockSize": 9}'),
        compressor("numcodecs.LZMA(preset=6)", '{"type": "xz", "preset": 6}'),
        compressor("numcodecs.Zstd(3)", '{"type": "zstd", "level": 3}'),
        compressor(
            'numcodecs.Blosc("lz4", 5, 1)',
            '{"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1}',
        ),
        Row(
            'root.create_dataset("x", data=values, compressor=numcodecs.LZ4())\n'
            'b"LZ4Block" in Path("c.n5/x/0/0/0").read_bytes()',
            'n5zarr.create_array(store, path="x", data=values, chunks=(5, 6, 7), compression="lz4")\n'  # noqa: E501
            'b"LZ4Block" in Path("c.n5/x/0/0/0").read_bytes()',
            "zarr 2 names a format of its own `lz4`; n5zarr writes Java's, and reads both",
        ),
        Row(
            'root.zeros("x", shape=(5, 6), chunks=(2, 3), dtype="u2",'
            " compressor=numcodecs.GZip(), overwrite=True)",
            "root = zarr.open(store, zarr_format=2)\n"
            'root.zeros(name="x", shape=(5, 6), chunks=(2, 3), dtype="u2",'
            " compressor=numcodecs.GZip(), overwrite=True)",
            listed=False,
        ),
        Row(
            'root.ones("x", shape=(4, 6), dtype="u2", compressor=None, chunks=(2, 3))[:]',
            'root.create_array("x", shape=(4, 6), dtype="u2", compressors=None, chunks=(2, 3),'
            " fill_value=1)[:]",
            "zarr 2 refuses fill values other than 0; n5zarr keeps them for Zarr,"
            " and other programs read 0",
            raises="old",
        ),
        Row(
            'root.full("x", shape=(4, 6), fill_value=0, dtype="u2", compressor=None,'
            " chunks=(2, 3))[:]",
            'root.create_array("x", shape=(4, 6), dtype="u2", compressors=None, chunks=(2, 3))[:]',
            listed=False,
        ),
        Row(
            'root.empty("x", shape=(4, 6), dtype="u2", compressor=None, chunks=(2, 3))[:]',
            'root.create_array("x", shape=(4, 6), dtype="u2", compressors=None, chunks=(2, 3))[:]',
        ),
        Row(
            'root.array("x", values, chunks=(2, 3, 4), compressor=None)',
            'root.create_array("x", data=values, chunks=(2, 3, 4), compressors=None)',
        ),
        Row(
            'root.zeros_like("x", root["em/s0"], compressor=numcodecs.GZip())',
            'root.create_array("x", shape=root["em/s0"].shape, chunks=root["em/s0"].chunks,'
            ' dtype=root["em/s0"].dtype, compressors=zarr.codecs.GzipCodec())',
        ),
        Row(
            'root.require_dataset("em/s0", shape=(5, 6, 7), dtype="u2")',
            'root.require_array("em/s0", shape=(5, 6, 7), dtype="u2")',
        ),
        Row(
            'root.require_dataset("em/s0", shape=(5, 6, 8), dtype="u2")',
            'root.require_array("em/s0", shape=(5, 6, 8), dtype="u2")',
            raises="both",
            listed=False,
        ),
        Row(
            'root.require_dataset("em/s0", shape=(5, 6, 7), dtype="u1")',
            'root.require_array("em/s0", shape=(5, 6, 7), dtype="u1")',
            "zarr 3 refuses another type, also one that can be cast",
            raises="new",
        ),
        Row(
            'zarr.create((5, 6), chunks=(2, 3), dtype="u2", compressor=numcodecs.GZip(),'
            ' store=store, path="x")',
            'zarr.create_array(store, name="x", shape=(5, 6), chunks=(2, 3), dtype="u2",'
            " compressors=zarr.codecs.GzipCodec())",
        ),
        Row(
            'zarr.create((5, 6), store=store, path="em/s0")',
            'zarr.create_array(store, name="em/s0", shape=(5, 6), dtype="f8")',
            raises="both",
            listed=False,
        ),
        Row(
            'zarr.create((5, 6), chunks=(2, 3), dtype="u2", compressor=None, store=store,'
            ' path="em/s0", overwrite=True)',
            'zarr.create_array(store, name="em/s0", shape=(5, 6), chunks=(2, 3), dtype="u2",'
            " compressors=None, overwrite=True)",
            listed=False,
        ),
        Row(
            'zarr.open_array(store, mode="w", path="x", shape=(5, 6), chunks=(2, 3), dtype="u2",'
            " compressor=None)",
            'zarr.create_array(store, name="x", shape=(5, 6), chunks=(2, 3), dtype="u2",'
            " compressors=None, overwrite=True)",
            listed=False,
        ),
        Row(
            'zarr.open_array(store, mode="r", path="em/s0")',
            'zarr.open_array(store, mode="r", path="em/s0")',
        ),
        Row(
            'zarr.open_array(store, mode="r", path="x")',
            'zarr.open_array(store, mode="r", path="x")',
            raises="both",
        ),
        Row('zarr.open(store, mode="r", path="em/s0")', 'n5zarr.open("c.n5/em/s0")'),
        Row(
            'zarr.array(values, store=store, path="x", compressor=None, chunks=(5, 6, 7))',
            'n5zarr.create_array("c.n5/x", data=values, compression=None, chunks=(5, 6, 7))',
            listed=False,
        ),
        Row(
            'zarr.save_array(store, values, path="x", compressor=None, chunks=(5, 6, 7))',
            'x = n5zarr.create_array("c.n5/x", data=values, compression=None, chunks=(5, 6, 7))',
            listed=False,
        ),
        Row('zarr.load(store, path="em/s0")', 'n5zarr.open("c.n5/em/s0")[:]'),
        Row(
            'zarr.load("c.n5")["em/s0"] if False else zarr.load("c.n5", path="em/s0")',
            'zarr.load(store, path="em/s0")',
            listed=False,
        ),
        Row(
            'zarr.copy(root["em/s0"], root, name="x")[:2]',
            'n5zarr.create_array("c.n5/x", data=root["em/s0"], chunks=root["em/s0"].chunks,'
            ' attributes=dict(root["em/s0"].attrs))',
            "zarr 2 gives counts of what it copied",
        ),
        Row(
            'zarr.copy_all(root["em"], root.create_group("x"))\nroot["x"]',
            'n5zarr.convert("c.n5/em", "copy.n5")\nzarr.open(n5zarr.N5Store("copy.n5"))',
            "zarr 2 cannot copy uncompressed arrays to N5; n5zarr copies to another container",
            raises="old",
        ),
        *(
            Row(
                f'root.create_dataset("x", data=values.astype("{name}"), compressor=None)[:]',
                f'root.create_array("x", data=values.astype("{name}"), compressors=None,'
                " chunks=(5, 6, 7))[:]",
                listed=False,
            )
            for name in ("int8", "uint8", "int64", "uint64", "float32", ">f8")
        ),
        Row(
            'root.create_dataset("x", shape=(3,), dtype=bool)',
            'root.create_array("x", shape=(3,), dtype=bool)',
            "zarr 2 wrote `bool`, which is no type of N5; n5zarr writes uint8, and keeps for Zarr"
            " that it is bool",
        ),
        Row(
            'root.create_dataset("x", shape=(3,), dtype="f2")',
            'root.create_array("x", shape=(3,), dtype="f2")',
            "zarr 2 wrote `float16`, which is no type of N5; n5zarr writes float32, and keeps for"
            " Zarr that it is float16",
        ),
        Row(
            'root.create_dataset("x", shape=(3, 3), dtype="u2", order="F")',
            'zarr.create_array(store, name="x", shape=(3, 3), dtype="u2", order="F",'
            " zarr_format=2)",
            'zarr 2 refuses `order="F"`; n5zarr keeps it for Zarr',
            raises="old",
        ),
        Row(
            'root.create_dataset("x", shape=(3,), dtype="f8",'
            ' filters=[numcodecs.AsType("f4", "f8")])',
            'zarr.create_array(store, name="x", shape=(3,), dtype="f8",'
            ' filters=[numcodecs.AsType("f4", "f8")], zarr_format=2)',
            "zarr 2 refuses filters; n5zarr keeps them for Zarr",
            raises="old",
        ),
        Row(
            'root.create_dataset("x", shape=(3,), dtype=object, object_codec=numcodecs.JSON())',
            'x = root.create_array("x", shape=(3,), dtype=str)',
            "zarr 2 refuses objects; text becomes N5's strings",
            raises="old",
        ),
        Row(
            'root.create_dataset("x", shape=(6, 1), chunks=(4,), dtype="u8", compressor=None)',
            'root.create_array("x", shape=(6, 1), chunks=(4, 1), dtype="u8", compressors=None)',
        ),
        Row(
            'root.create_dataset("x", shape=(0,), chunks=(1,), dtype="f4", compressor=None)',
            'root.create_array("x", shape=(0,), chunks=(1,), dtype="f4", compressors=None)',
            listed=False,
        ),
        Row(
            'root.create_dataset("x", **given, compressor=None, dimension_separator="/")',
            'root.create_array("x", **given, compressors=None)',
        ),
        Row(
            'x = root.create_dataset("x", data=0 * values, chunks=(2, 3, 4))\nx.nchunks_initialized',  # noqa: E501
            'x = root.create_array("x", data=0 * values, chunks=(2, 3, 4),'
            " config={'write_empty_chunks': True}, compressors=zarr.codecs.BloscCodec())\n"
            "x.nchunks_initialized",
        ),
        Row(
            'x = root.create_dataset("x", data=0 * values, chunks=(2, 3, 4),'
            " write_empty_chunks=False)\nx.nchunks_initialized",
            'x = root.create_array("x", data=0 * values, chunks=(2, 3, 4),'
            " compressors=zarr.codecs.BloscCodec())\nx.nchunks_initialized",
            listed=False,
        ),
    ),
    *(f"{before}\n{GIVEN}" for before in OF_ROOT),
)

SAME = (
    "a[:]", "a[...]", "a[1:4, 2, ::2]", "a[-1]", "a[:, 1:3][0]", "a.get_basic_selection((1, 2))",
    "a.oindex[[0, 2], :, 3]", "a.vindex[[0, 2], [1, 3], [4, 5]]", "a.blocks[1, 0, 1]",
    "a.get_orthogonal_selection(([0, 2], slice(2), 1))",
    "a.get_coordinate_selection(([0, 2], [1, 3], [4, 5]))",
    "a.get_mask_selection(np.arange(210).reshape(5, 6, 7) % 2 == 0)", "np.asarray(a)",
    "np.asarray(a, dtype='f4')", "a.shape", "a.chunks", "a.ndim", "a.size", "a.nbytes",
    "a.nchunks", "a.cdata_shape", "a.nchunks_initialized", "a.fill_value", "a.name", "a.path",
    "a.basename", "a.read_only", "a.order",
    "a[1:3] = 7", "a[:] = values[::-1]", "a.blocks[0, 0, 0] = 5", "a.oindex[[0, 2], :, 3] = 1",
    "a.vindex[[0, 2], [1, 3], [4, 5]] = 9", "a.set_basic_selection((0, 0), 3)",
    "a.set_mask_selection(np.asarray(a) > 100, 0)", "a[0, 0, 0]", "list(a)[0]",
    "a.attrs['resolution'][::-1]",
)  # fmt: skip

ELEMENTS = Section(
    "Reading and writing elements",
    (
        *(Row(line, line) for line in SAME),
        Row("np.dtype(a.dtype).newbyteorder('=').name", "a.dtype.name"),
        Row("a.dtype.str", "a.dtype.str"),
        Row(
            "a.compressor.get_config()['compressor_config']['id']",
            "a.compressors[0].to_dict()['name']",
        ),
        Row("a.filters", "a.filters"),
        Row("len(a)", "a.shape[0]"),
        Row("a.resize(5, 4, 7)", "a.resize((5, 4, 7))"),
        Row("a.resize((8, 6, 7))\na[:]", "a.resize((8, 6, 7))\na[:]", listed=False),
        Row("a.append(values)", "a.append(values)"),
        Row("a.append(values, axis=2)", "a.append(values, axis=2)"),
        Row("a.astype('f4')[:]", "a[:].astype('f4')"),
        Row("next(a.islice(2))", "a[2]"),
        Row(
            "a.hexdigest('sha1')",
            "import hashlib\nhashlib.sha1(a[:].tobytes()).hexdigest()",
            "zarr 2 takes the stored bytes and the document; other libraries give others",
        ),
        Row("a.nbytes_stored > 0", "a.nbytes_stored() > 0"),
        Row("a.is_view", "False", listed=False),
    ),
    OF_ROOT[0] + '\na = root["em/s0"]',
    OF_ROOT[1] + '\na = root["em/s0"]',
)

WRAPPER = Section(
    "N5ChunkWrapper",
    (
        Row(
            'np.frombuffer(N5ChunkWrapper("u2", (2, 3), compressor=None).decode(block), "u2")',
            'N5Block("u2", (2, 3), {"type": "raw"}).decode(block).ravel()',
        ),
        Row(
            'bytes(N5ChunkWrapper("u2", (2, 3), compressor=None).encode(part))',
            'N5Block("u2", (2, 3), {"type": "raw"}).encode(part)',
        ),
        Row(
            'bytes(N5ChunkWrapper("u2", (2, 3), compressor=None).encode(part))',
            'n5zarr.encode_block(part, compression={"type": "raw"})',
            listed=False,
        ),
        Row(
            'np.frombuffer(N5ChunkWrapper("u2", (2, 3), compressor=None).decode(block), "u2")',
            'n5zarr.decode_block(block, data_type="uint16", compression={"type": "raw"}).ravel()',
            listed=False,
        ),
        *(
            Row(
                f'codec = N5ChunkWrapper("u2", (2, 3), compressor=numcodecs.{old})\n'
                'np.frombuffer(codec.decode(codec.encode(part)), "u2")',
                f'codec = N5Block("u2", (2, 3), {{"type": "{new}"}})\n'
                "codec.decode(codec.encode(part)).ravel()",
                listed=new == "gzip",
            )
            for old, new in (("GZip()", "gzip"), ("Zstd()", "zstd"), ("BZ2()", "bzip2"))
        ),
        Row(
            'codec = N5ChunkWrapper("u2", (2, 3), compressor_config={"id": "gzip", "level": 1})\n'
            'np.frombuffer(codec.decode(codec.encode(part)), "u2")',
            'codec = N5Block("u2", (2, 3), {"type": "gzip", "level": 1})\n'
            "codec.decode(codec.encode(part)).ravel()",
        ),
        Row(
            'out = np.zeros((2, 3), "u2")\n'
            'N5ChunkWrapper("u2", (2, 3)).decode(block, out=out)\nout',
            'out = np.zeros((2, 3), "u2")\n'
            'N5Block("u2", (2, 3), {"type": "raw"}).decode(block, out=out)\nout',
            listed=False,
        ),
        Row(
            "import numcodecs.registry\n"
            'codec = N5ChunkWrapper("u2", (2, 3))\n'
            "again = numcodecs.registry.get_codec(codec.get_config())\n"
            'np.frombuffer(again.decode(block), "u2")',
            'codec = N5Block("u2", (2, 3), {"type": "raw"})\n'
            "again = numcodecs.registry.get_codec(codec.get_config())\n"
            "again.decode(block).ravel()",
            "zarr 2 leaves type and shape out of the configuration",
            raises="old",
        ),
        Row("N5ChunkWrapper.codec_id", "N5Block.codec_id", "another name, as the codec is another"),
        Row(
            'np.frombuffer(N5ChunkWrapper("u2", (4, 5)).decode(block), "u2").reshape(4, 5)',
            'N5Block("u2", (4, 5), {"type": "raw"}).decode(block).reshape(4, 5)',
            listed=False,
        ),
        Row(
            'N5ChunkWrapper("u2", (2, 3)).decode(block[:-1])',
            'N5Block("u2", (2, 3), {"type": "raw"}).decode(block[:-1])',
            raises="both",
            listed=False,
        ),
    ),
    "from zarr.n5 import N5ChunkWrapper\n"
    "part = values[0, :2, :3].copy()\n"
    'block = bytes.fromhex("0000000200000003000000020001000200030004" "00050006")',
    "from n5zarr import N5Block\n"
    "part = values[0, :2, :3].copy()\n"
    'block = bytes.fromhex("0000000200000003000000020001000200030004" "00050006")',
)
