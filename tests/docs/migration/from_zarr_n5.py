"""List rows of zarr-n5: its stores, its codec and its command."""

from __future__ import annotations

from tests.docs.migration.model import Library, Section

__all__ = ["ZARR_N5"]

OLD_NAMES = "zarr-n5 adds the attribute `_n5`, a copy of the document"
AS_GROUP = "zarr-n5 takes the file `attributes.json` for a group, too"
HEADER = 'bytes.fromhex("0000000200000003000000020001000200030004" "00050006")'

# zarr imports n5zarr, too, which is installed: its codec and its pipeline take no part
ALONE = """import n5zarr
zarr.config.set({"codecs.n5_default": "zarr_n5.codec.default.N5DefaultCodec",
    "codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"})"""

STORES = Section(
    "Stores",
    """
- zarr.open(N5WrapperStore(local), mode="r")
+ zarr.open(store, mode='r')
- zarr.open(ImplicitGroupWrapperStore(N5WrapperStore(local)), mode="r")
+ zarr.open(store, mode='r')
# zarr-n5 takes the file `attributes.json` for a group, too
- zarr.open_array(N5WrapperStore(local), mode="r", path="em/s0")[:]
+ zarr.open_array(store, mode="r", path="em/s0")[:]
- zarr.open_array(N5WrapperStore(local), mode="r", path="em/s0")[:]
+ n5zarr.open("c.n5/em/s0")[:]
# the usual order of n5zarr: z, y, x
- dict(zarr.open_group(N5WrapperStore(local), mode="r", path="em").attrs)
+ dict(zarr.open_group(store, mode="r", path="em").attrs)
# zarr-n5 adds the attribute `_n5`, a copy of the document
- zarr.open_array(N5WrapperStore(local), path="em/s0").attrs["_n5"]["blockSize"]
+ n5zarr.get_attribute("c.n5", "em/s0", "blockSize")
- Path("c.n5/g/h").mkdir(parents=True)
- zarr.open_group(ImplicitGroupWrapperStore(N5WrapperStore(local)), mode="r", path="g")
+ Path("c.n5/g/h").mkdir(parents=True)
+ zarr.open_group(store, mode="r", path="g")
- zarr.open_group(ImplicitGroupWrapperStore(N5WrapperStore(local)), mode="r", path="none")
+ zarr.open_group(store, mode="r", path="none")
! new: zarr-n5 shows an empty group where nothing is
- zarr.open(N5WrapperStore(local), mode="r+")["em/s0"][0] = 7
- zarr.open(N5WrapperStore(local), mode="r+")["em/s0"][0, 0, 0]
+ zarr.open(store, mode="r+")["em/s0"][0] = 7
+ zarr.open(store, mode="r+")["em/s0"][0, 0, 0]
! old: zarr-n5 reads only
- zarr.open(N5WrapperStore(local), mode="r+")["em"].attrs["a"] = 1
+ zarr.open(store, mode="r+")["em"].attrs["a"] = 1
# zarr-n5 writes a `zarr.json` that it does not read
- zarr.create_array(N5WrapperStore(local), name="x", shape=(4,), dtype="u1")
+ zarr.create_array(store, name="x", shape=(4,), dtype="u1")
# zarr-n5 writes a `zarr.json` that it does not read
""",
    others="""
- zarr.open_array(N5WrapperStore(local), mode="r", path="em/s0").chunks
+ zarr.open_array(store, mode="r", path="em/s0").chunks
- zarr.open_array(N5WrapperStore(local), mode="r", path="em/s0").dtype
+ zarr.open_array(store, mode="r", path="em/s0").dtype
- zarr.open_array(N5WrapperStore(local), mode="r", path="em/mask")[1:3, 2, ::2]
+ zarr.open_array(store, mode="r", path="em/mask")[1:3, 2, ::2]
- zarr.open_array(N5WrapperStore(local), mode="r", path="em/s0").attrs["resolution"]
+ zarr.open_array(store, mode="r", path="em/s0").attrs["resolution"]
- sorted(zarr.open(N5WrapperStore(local), mode="r")["em"])
+ sorted(zarr.open(store, mode="r")["em"])
- sorted(name for name, _ in zarr.open(N5WrapperStore(local)).members(None))
+ sorted(name for name, _ in zarr.open(store).members(None))
- N5WrapperStore(local).supports_writes
+ store.supports_writes
# zarr-n5 reads only
- zarr.open(N5WrapperStore(local), mode="a").create_group("x")
+ zarr.open(store, mode="a").create_group("x")
""",
    before_old="from zarr.storage import LocalStore\n"
    "from zarr_n5 import ImplicitGroupWrapperStore, N5WrapperStore\n"
    'local = LocalStore("c.n5")',
    before_new='store = n5zarr.N5Store("c.n5", axis_order="F")',
)

CODEC = Section(
    "Codec and conversion",
    """
- zarr.create_array({}, shape=(4, 6), chunks=(2, 3), dtype="u2", \
serializer=N5DefaultCodec.from_compressor(2, zarr.codecs.GzipCodec()), compressors=None, \
fill_value=0)[:]
+ n5zarr.create_array("x.n5/x", shape=(4, 6), chunks=(2, 3), dtype="u2")[:]
- asyncio.run(convert_hierarchy('c.n5', infer_groups=False))
# n5zarr reads what it writes, without zarr-n5
- N5GroupMetadata.from_jso({'a': 1, 'n5': '4.0.0'}).is_root()
# zarr-n5's own classes; `n5zarr.format` parses documents
- N5BlockHeader.from_bytes(block).shape
+ n5zarr.decode_block(block, data_type='uint16', compression={'type': 'raw'}, axis_order='F').shape
""",
    before_old="import asyncio\n"
    "from zarr_n5 import N5DefaultCodec\n"
    "from zarr_n5.convert import convert_hierarchy\n"
    "from zarr_n5.metadata import N5GroupMetadata\n"
    "from zarr_n5.util import N5BlockHeader\n"
    f"block = {HEADER}",
    before_new=f"block = {HEADER}",
)

ZARR_N5 = Library(
    name="zarr-n5",
    page="zarr-n5",
    before_old=f"import zarr\n{ALONE}",
    before_new="import n5zarr, zarr",
    sections=(STORES, CODEC),
)
