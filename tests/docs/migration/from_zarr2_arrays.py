"""List rows of zarr-python 2: creating, reading and writing arrays, and its block codec."""

from __future__ import annotations

from tests.docs.migration.model import Row, Section

__all__ = ["CREATING", "ELEMENTS", "WRAPPER"]

OF_ROOT = (
    'store = zarr.N5Store("c.n5")\nroot = zarr.open(store)',
    'store = n5zarr.N5Store("c.n5")\nroot = zarr.open(store)',
)
GIVEN = 'given = {"data": values, "chunks": (2, 3, 4)}'


CREATING = Section(
    "Creating arrays",
    """
- root.create_dataset("x", shape=(5, 6), chunks=(2, 3), dtype="u2")
+ root.create_array("x", shape=(5, 6), chunks=(2, 3), dtype="u2")
# zarr 3 compresses with zstd by default, zarr 2 with blosc
- root.create_dataset("x", shape=(5, 6), chunks=(2, 3), dtype="u2", compressor=numcodecs.GZip(5))
+ root.create_array("x", shape=(5, 6), chunks=(2, 3), dtype="u2", \
compressors=zarr.codecs.GzipCodec(level=5))
- root.create_dataset("x", shape=(5, 6), chunks=(2, 3), dtype="u2", compression="gzip", \
compression_opts=3)
+ n5zarr.create_array(store, path="x", shape=(5, 6), chunks=(2, 3), dtype="u2", \
compression={"type": "gzip", "level": 3})
- root.create_dataset("x", **given, compressor=None)
+ n5zarr.create_array(store, path="x", **given, compression="raw")
- root.create_dataset("x", **given, compressor=numcodecs.GZip(1))
+ n5zarr.create_array(store, path="x", **given, compression={"type": "gzip", "level": 1})
- root.create_dataset("x", **given, compressor=numcodecs.Zlib(1))
+ n5zarr.create_array(store, path="x", **given, compression={"type": "gzip", "level": 1, \
"useZlib": True})
- root.create_dataset("x", **given, compressor=numcodecs.BZ2(9))
+ n5zarr.create_array(store, path="x", **given, compression={"type": "bzip2", "blockSize": 9})
- root.create_dataset("x", **given, compressor=numcodecs.LZMA(preset=6))
+ n5zarr.create_array(store, path="x", **given, compression={"type": "xz", "preset": 6})
- root.create_dataset("x", **given, compressor=numcodecs.Zstd(3))
+ n5zarr.create_array(store, path="x", **given, compression={"type": "zstd", "level": 3})
- root.create_dataset("x", **given, compressor=numcodecs.Blosc("lz4", 5, 1))
+ n5zarr.create_array(store, path="x", **given, compression={"type": "blosc", "cname": "lz4", \
"clevel": 5, "shuffle": 1})
- root.create_dataset("x", data=values, compressor=numcodecs.LZ4())
- b"LZ4Block" in Path("c.n5/x/0/0/0").read_bytes()
+ n5zarr.create_array(store, path="x", data=values, chunks=(5, 6, 7), compression="lz4")
+ b"LZ4Block" in Path("c.n5/x/0/0/0").read_bytes()
# zarr 2 names a format of its own `lz4`; n5zarr writes Java's, and reads both
- root.ones("x", shape=(4, 6), dtype="u2", compressor=None, chunks=(2, 3))[:]
+ root.create_array("x", shape=(4, 6), dtype="u2", compressors=None, chunks=(2, 3), fill_value=1)[:]
! old: zarr 2 refuses fill values other than 0; n5zarr keeps them for Zarr, and other programs \
read 0
- root.empty("x", shape=(4, 6), dtype="u2", compressor=None, chunks=(2, 3))[:]
+ root.create_array("x", shape=(4, 6), dtype="u2", compressors=None, chunks=(2, 3))[:]
- root.array("x", values, chunks=(2, 3, 4), compressor=None)
+ root.create_array("x", data=values, chunks=(2, 3, 4), compressors=None)
- root.zeros_like("x", root["em/s0"], compressor=numcodecs.GZip())
+ root.create_array("x", shape=root["em/s0"].shape, chunks=root["em/s0"].chunks, \
dtype=root["em/s0"].dtype, compressors=zarr.codecs.GzipCodec())
- root.require_dataset("em/s0", shape=(5, 6, 7), dtype="u2")
+ root.require_array("em/s0", shape=(5, 6, 7), dtype="u2")
- root.require_dataset("em/s0", shape=(5, 6, 7), dtype="u1")
+ root.require_array("em/s0", shape=(5, 6, 7), dtype="u1")
! new: zarr 3 refuses another type, also one that can be cast
- zarr.create((5, 6), chunks=(2, 3), dtype="u2", compressor=numcodecs.GZip(), store=store, path="x")
+ zarr.create_array(store, name="x", shape=(5, 6), chunks=(2, 3), dtype="u2", \
compressors=zarr.codecs.GzipCodec())
= zarr.open_array(store, mode="r", path="em/s0")
= zarr.open_array(store, mode="r", path="x")
! both
- zarr.open(store, mode="r", path="em/s0")
+ n5zarr.open("c.n5/em/s0")
- zarr.load(store, path="em/s0")
+ n5zarr.open("c.n5/em/s0")[:]
- zarr.copy(root["em/s0"], root, name="x")[:2]
+ n5zarr.create_array("c.n5/x", data=root["em/s0"], chunks=root["em/s0"].chunks, \
attributes=dict(root["em/s0"].attrs))
# zarr 2 gives counts of what it copied
- zarr.copy_all(root["em"], root.create_group("x"))
- root["x"]
+ n5zarr.convert("c.n5/em", "copy.n5")
+ zarr.open(n5zarr.N5Store("copy.n5"))
! old: zarr 2 cannot copy uncompressed arrays to N5; n5zarr copies to another container
- root.create_dataset("x", shape=(3,), dtype=bool)
+ root.create_array("x", shape=(3,), dtype=bool)
# zarr 2 wrote `bool`, which is no type of N5; n5zarr writes uint8, and keeps for Zarr that it is \
bool
- root.create_dataset("x", shape=(3,), dtype="f2")
+ root.create_array("x", shape=(3,), dtype="f2")
# zarr 2 wrote `float16`, which is no type of N5; n5zarr writes float32, and keeps for Zarr that \
it is float16
- root.create_dataset("x", shape=(3, 3), dtype="u2", order="F")
+ zarr.create_array(store, name="x", shape=(3, 3), dtype="u2", order="F", zarr_format=2)
! old: zarr 2 refuses `order="F"`; n5zarr keeps it for Zarr
- root.create_dataset("x", shape=(3,), dtype="f8", filters=[numcodecs.AsType("f4", "f8")])
+ zarr.create_array(store, name="x", shape=(3,), dtype="f8", filters=[numcodecs.AsType("f4", \
"f8")], zarr_format=2)
! old: zarr 2 refuses filters; n5zarr keeps them for Zarr
- root.create_dataset("x", shape=(3,), dtype=object, object_codec=numcodecs.JSON())
+ x = root.create_array("x", shape=(3,), dtype=str)
! old: zarr 2 refuses objects; text becomes N5's strings
- root.create_dataset("x", shape=(6, 1), chunks=(4,), dtype="u8", compressor=None)
+ root.create_array("x", shape=(6, 1), chunks=(4, 1), dtype="u8", compressors=None)
- root.create_dataset("x", **given, compressor=None, dimension_separator="/")
+ root.create_array("x", **given, compressors=None)
- x = root.create_dataset("x", data=0 * values, chunks=(2, 3, 4))
- x.nchunks_initialized
+ x = root.create_array("x", data=0 * values, chunks=(2, 3, 4), config={'write_empty_chunks': \
True}, compressors=zarr.codecs.BloscCodec())
+ x.nchunks_initialized
""",
    others="""
- root.create_dataset("x", shape=(5, 6), chunks=(2, 3), dtype="u2", compression="gzip")
+ n5zarr.create_array(store, path="x", shape=(5, 6), chunks=(2, 3), dtype="u2", compression="gzip")
- root.zeros("x", shape=(5, 6), chunks=(2, 3), dtype="u2", compressor=numcodecs.GZip(), \
overwrite=True)
+ root = zarr.open(store, zarr_format=2)
+ root.zeros(name="x", shape=(5, 6), chunks=(2, 3), dtype="u2", compressor=numcodecs.GZip(), \
overwrite=True)
- root.full("x", shape=(4, 6), fill_value=0, dtype="u2", compressor=None, chunks=(2, 3))[:]
+ root.create_array("x", shape=(4, 6), dtype="u2", compressors=None, chunks=(2, 3))[:]
- root.require_dataset("em/s0", shape=(5, 6, 8), dtype="u2")
+ root.require_array("em/s0", shape=(5, 6, 8), dtype="u2")
! both
- zarr.create((5, 6), store=store, path="em/s0")
+ zarr.create_array(store, name="em/s0", shape=(5, 6), dtype="f8")
! both
- zarr.create((5, 6), chunks=(2, 3), dtype="u2", compressor=None, store=store, path="em/s0", \
overwrite=True)
+ zarr.create_array(store, name="em/s0", shape=(5, 6), chunks=(2, 3), dtype="u2", \
compressors=None, overwrite=True)
- zarr.open_array(store, mode="w", path="x", shape=(5, 6), chunks=(2, 3), dtype="u2", \
compressor=None)
+ zarr.create_array(store, name="x", shape=(5, 6), chunks=(2, 3), dtype="u2", compressors=None, \
overwrite=True)
- zarr.array(values, store=store, path="x", compressor=None, chunks=(5, 6, 7))
+ n5zarr.create_array("c.n5/x", data=values, compression=None, chunks=(5, 6, 7))
- zarr.save_array(store, values, path="x", compressor=None, chunks=(5, 6, 7))
+ x = n5zarr.create_array("c.n5/x", data=values, compression=None, chunks=(5, 6, 7))
- zarr.load("c.n5")["em/s0"] if False else zarr.load("c.n5", path="em/s0")
+ zarr.load(store, path="em/s0")
- root.create_dataset("x", shape=(0,), chunks=(1,), dtype="f4", compressor=None)
+ root.create_array("x", shape=(0,), chunks=(1,), dtype="f4", compressors=None)
- x = root.create_dataset("x", data=0 * values, chunks=(2, 3, 4), write_empty_chunks=False)
- x.nchunks_initialized
+ x = root.create_array("x", data=0 * values, chunks=(2, 3, 4), \
compressors=zarr.codecs.BloscCodec())
+ x.nchunks_initialized
""",
    more=tuple(
        Row(
            f'root.create_dataset("x", data=values.astype("{name}"), compressor=None)[:]',
            f'root.create_array("x", data=values.astype("{name}"), compressors=None,'
            " chunks=(5, 6, 7))[:]",
            listed=False,
        )
        for name in ("int8", "uint8", "int64", "uint64", "float32", ">f8")
    ),
    before_old=f"{OF_ROOT[0]}\n{GIVEN}",
    before_new=f"{OF_ROOT[1]}\n{GIVEN}",
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
    """
- np.dtype(a.dtype).newbyteorder('=').name
+ a.dtype.name
= a.dtype.str
- a.compressor.get_config()['compressor_config']['id']
+ a.compressors[0].to_dict()['name']
= a.filters
- len(a)
+ a.shape[0]
- a.resize(5, 4, 7)
+ a.resize((5, 4, 7))
= a.append(values)
= a.append(values, axis=2)
- a.astype('f4')[:]
+ a[:].astype('f4')
- next(a.islice(2))
+ a[2]
- a.hexdigest('sha1')
+ import hashlib
+ hashlib.sha1(a[:].tobytes()).hexdigest()
# zarr 2 takes the stored bytes and the document; other libraries give others
- a.nbytes_stored > 0
+ a.nbytes_stored() > 0
""",
    others="""
- a.resize((8, 6, 7))
- a[:]
+ a.resize((8, 6, 7))
+ a[:]
- a.is_view
+ False
""",
    same=SAME,
    before_old=OF_ROOT[0] + '\na = root["em/s0"]',
    before_new=OF_ROOT[1] + '\na = root["em/s0"]',
)

WRAPPER = Section(
    "N5ChunkWrapper",
    """
- np.frombuffer(N5ChunkWrapper("u2", (2, 3), compressor=None).decode(block), "u2")
+ N5Block("u2", (2, 3), {"type": "raw"}).decode(block).ravel()
- bytes(N5ChunkWrapper("u2", (2, 3), compressor=None).encode(part))
+ N5Block("u2", (2, 3), {"type": "raw"}).encode(part)
- codec = N5ChunkWrapper("u2", (2, 3), compressor=numcodecs.GZip())
- np.frombuffer(codec.decode(codec.encode(part)), "u2")
+ codec = N5Block("u2", (2, 3), {"type": "gzip"})
+ codec.decode(codec.encode(part)).ravel()
- codec = N5ChunkWrapper("u2", (2, 3), compressor_config={"id": "gzip", "level": 1})
- np.frombuffer(codec.decode(codec.encode(part)), "u2")
+ codec = N5Block("u2", (2, 3), {"type": "gzip", "level": 1})
+ codec.decode(codec.encode(part)).ravel()
- import numcodecs.registry
- codec = N5ChunkWrapper("u2", (2, 3))
- again = numcodecs.registry.get_codec(codec.get_config())
- np.frombuffer(again.decode(block), "u2")
+ codec = N5Block("u2", (2, 3), {"type": "raw"})
+ again = numcodecs.registry.get_codec(codec.get_config())
+ again.decode(block).ravel()
! old: zarr 2 leaves type and shape out of the configuration
- N5ChunkWrapper.codec_id
+ N5Block.codec_id
# another name, as the codec is another
""",
    others="""
- bytes(N5ChunkWrapper("u2", (2, 3), compressor=None).encode(part))
+ n5zarr.encode_block(part, compression={"type": "raw"})
- np.frombuffer(N5ChunkWrapper("u2", (2, 3), compressor=None).decode(block), "u2")
+ n5zarr.decode_block(block, data_type="uint16", compression={"type": "raw"}).ravel()
- codec = N5ChunkWrapper("u2", (2, 3), compressor=numcodecs.Zstd())
- np.frombuffer(codec.decode(codec.encode(part)), "u2")
+ codec = N5Block("u2", (2, 3), {"type": "zstd"})
+ codec.decode(codec.encode(part)).ravel()
- codec = N5ChunkWrapper("u2", (2, 3), compressor=numcodecs.BZ2())
- np.frombuffer(codec.decode(codec.encode(part)), "u2")
+ codec = N5Block("u2", (2, 3), {"type": "bzip2"})
+ codec.decode(codec.encode(part)).ravel()
- out = np.zeros((2, 3), "u2")
- N5ChunkWrapper("u2", (2, 3)).decode(block, out=out)
- out
+ out = np.zeros((2, 3), "u2")
+ N5Block("u2", (2, 3), {"type": "raw"}).decode(block, out=out)
+ out
- np.frombuffer(N5ChunkWrapper("u2", (4, 5)).decode(block), "u2").reshape(4, 5)
+ N5Block("u2", (4, 5), {"type": "raw"}).decode(block).reshape(4, 5)
- N5ChunkWrapper("u2", (2, 3)).decode(block[:-1])
+ N5Block("u2", (2, 3), {"type": "raw"}).decode(block[:-1])
! both
""",
    before_old="from zarr.n5 import N5ChunkWrapper\n"
    "part = values[0, :2, :3].copy()\n"
    'block = bytes.fromhex("0000000200000003000000020001000200030004" "00050006")',
    before_new="from n5zarr import N5Block\n"
    "part = values[0, :2, :3].copy()\n"
    'block = bytes.fromhex("0000000200000003000000020001000200030004" "00050006")',
)
