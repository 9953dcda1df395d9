"""List rows of tensorstore's N5 driver: each member of its spec, and calls of its arrays."""

from __future__ import annotations

from tests.docs.migration.from_tensorstore_arrays import ARRAYS
from tests.docs.migration.model import Library, Row, Section

__all__ = ["TENSORSTORE"]

OPENING = Section(
    "Members for opening",
    """
- ts.open({"driver": "n5", "kvstore": {"driver": "file", "path": "c.n5/em/s0"}}).result()
+ n5zarr.open("c.n5/em/s0", axis_order="F")
- ts.open({"driver": "n5", "kvstore": {"driver": "file", "path": "c.n5/em/s0"}}).result()
+ n5zarr.open("c.n5/em/s0")
# the usual order of n5zarr: z, y, x
- ts.open(f"file://{Path.cwd()}/c.n5/em/s0/|n5:").result()
+ n5zarr.open(f"file://{Path.cwd()}/c.n5|n5:em/s0", axis_order="F")
- ts.open({"driver": "n5", "kvstore": "memory://m.n5/x/"}, create=True, dtype=ts.uint16, shape=[4, \
5]).result().shape
+ n5zarr.create_array("memory://m.n5/x", axis_order="F", dtype="uint16", shape=[4, 5]).shape
- ts.open({**s0, "dtype": "uint16"}).result()
+ n5zarr.open(s0, axis_order="F", dtype="uint16")
- ts.open({**s0, "schema": {"rank": 3}}).result()
+ n5zarr.open(s0, axis_order="F", ndim=3)
- ts.open({**s0, "schema": {"domain": {"shape": [7, 6, 5]}}}).result()
+ n5zarr.open(s0, axis_order="F", shape=(7, 6, 5))
- ts.open({**s0, "schema": {"chunk_layout": {"chunk": {"shape": [4, 3, 2]}}}}).result()
+ n5zarr.open(s0, axis_order="F", chunks=(4, 3, 2))
- ts.open({**s0, "schema": {"codec": {"driver": "n5", "compression": {"type": "gzip", "level": \
5}}}}).result()
+ n5zarr.open(s0, axis_order="F", compression={"type": "gzip", "level": 5})
- ts.open({**s0, "schema": {"fill_value": 0}}).result()
+ n5zarr.open(s0, axis_order="F")
! old: tensorstore refuses a fill value with N5
- ts.open({**s0, "schema": {"dimension_units": ["4 nm", "4 nm", "40 nm"]}}).result()
+ found = n5zarr.geometry(s0, axis_order="F")
+ assert (found.scale, found.units) == ((4, 4, 40), ("nm", "nm", "nm"))
+ n5zarr.open(s0, axis_order="F")
- ts.open({**s0, "metadata": {"dimensions": [7, 6, 5]}}).result()
+ n5zarr.open(s0, axis_order="F", shape=(7, 6, 5))
- ts.open(s0, read=True).result()
+ n5zarr.open(s0, "r", axis_order="F")
- ts.open(s0, read=True, write=True).result()
+ n5zarr.open(s0, "r+", axis_order="F")
- ts.open({**s0, "context": {"cache_pool": {"total_bytes_limit": 10_000_000}}}).result()
+ n5zarr.open(s0, axis_order="F")
- ts.open({**s0, "context": {"file_io_concurrency": {"limit": 4}}}).result()
+ zarr.open_array(n5zarr.N5Store("c.n5", concurrency=4, axis_order="F"), path="em/s0")
- ts.open({**s0, "context": {"file_io_sync": False}, "open": True}).result()
+ n5zarr.open(s0, axis_order="F", durability="atomic")
- ts.open({**s0, "context": {"file_io_sync": True}}).result()
+ n5zarr.open(s0, axis_order="F", durability="durable")
- ts.open({**s0, "context": {"file_io_locking": {"mode": "non_atomic"}}}).result()
+ n5zarr.open(s0, axis_order="F", durability="overwrite")
- ts.open({**s0, "recheck_cached_metadata": "open"}).result()
+ n5zarr.CacheOptions(recheck="open")
+ n5zarr.open(s0, axis_order="F")
- ts.open({**s0, "recheck_cached_data": True}).result()
+ n5zarr.CacheOptions(recheck=True)
+ n5zarr.open(s0, axis_order="F")
- ts.open({**s0, "fill_missing_data_reads": False}).result()[5, 4, 4].read().result()
+ n5zarr.open(s0, axis_order="F", fill_missing=False)[5, 4, 4]
! both
- ts.open({**s0, "store_data_equal_to_fill_value": True}).result()[:4, :3, :2].write(0).result()
- Path("c.n5/em/s0/0/0/0").exists()
+ with zarr.config.set({"array.write_empty_chunks": True}):
+     n5zarr.open(s0, "r+", axis_order="F")[:4, :3, :2] = 0
+ Path("c.n5/em/s0/0/0/0").exists()
- ts.open({**s0, "transform": {"input_inclusive_min": [1, 0, 0], "input_exclusive_max": [4, 6, 5], \
"output": [{"input_dimension": n} for n in range(3)]}}).result()
+ n5zarr.open(s0, axis_order="F")[1:4, 0:6, 0:5]
- ts.open({"driver": "n5", "kvstore": none, "metadata": document}, open=True, \
assume_metadata=True).result().shape
+ n5zarr.open("none", assume_metadata=document, axis_order="F").shape
""",
    others="""
- ts.open({"driver": "n5", "kvstore": {"driver": "file", "path": "c.n5"}, "path": "em/s0"}).result()
+ n5zarr.open("c.n5", path="em/s0", axis_order="F")
- kv = ts.KvStore.open(f"file://{Path.cwd()}/c.n5/em/s0/").result()
- ts.open({"driver": "n5", "kvstore": kv.spec().to_json()}).result()
+ from zarr.storage import LocalStore
+ n5zarr.open(LocalStore("c.n5"), path="em/s0", axis_order="F")
- ts.open({**s0, "dtype": "uint8"}).result()
+ n5zarr.open(s0, axis_order="F", dtype="uint8")
! both
- ts.open({**s0, "schema": {"rank": 2}}).result()
+ n5zarr.open(s0, axis_order="F", ndim=2)
! both
- ts.open({**s0, "schema": {"dtype": "uint16"}}).result()
+ n5zarr.open(s0, axis_order="F", dtype="uint16")
- ts.open({**s0, "schema": {"domain": {"shape": [7, 6, 4]}}}).result()
+ n5zarr.open(s0, axis_order="F", shape=(7, 6, 4))
! both
- ts.open({**s0, "schema": {"codec": {"driver": "n5", "compression": {"type": "raw"}}}}).result()
+ n5zarr.open(s0, axis_order="F", compression={"type": "raw"})
! both
- ts.open({**s0, "metadata": {"blockSize": [4, 3, 2]}}).result()
+ n5zarr.open(s0, axis_order="F", chunks=(4, 3, 2))
- ts.open({**s0, "metadata": {"dataType": "uint16"}}).result()
+ n5zarr.open(s0, axis_order="F", dtype="uint16")
- ts.open({**s0, "metadata": {"compression": {"type": "gzip", "level": 5}}}).result()
+ n5zarr.open(s0, axis_order="F", compression={"type": "gzip", "level": 5})
- ts.open({**s0, "metadata": {"dataType": "int16"}}).result()
+ n5zarr.open(s0, axis_order="F", dtype="int16")
! both
- ts.open({**s0, "open": True}).result()
+ n5zarr.open(s0, axis_order="F")
- ts.open(s0, read=True).result()[0, 0, 0].write(1).result()
+ n5zarr.open(s0, "r", axis_order="F")[0, 0, 0] = 1
! both
- ts.open({**s0, "context": {"data_copy_concurrency": {"limit": 2}}}).result()
+ with zarr.config.set({"threading.max_workers": 2}):
+     a = n5zarr.open(s0, axis_order="F")
+ a
- ts.open({**s0, "recheck_cached_metadata": False}).result()
+ n5zarr.CacheOptions(recheck=False)
+ n5zarr.open(s0, axis_order="F")
- ts.open({**s0, "cache_pool": "cache_pool"}).result()
+ n5zarr.open(s0, axis_order="F")
- ts.open({**s0, "data_copy_concurrency": "data_copy_concurrency"}).result()
+ n5zarr.open(s0, axis_order="F")
- ts.open({**s0}).result()[:4, :3, :2].write(0).result()
- Path("c.n5/em/s0/0/0/0").exists()
+ n5zarr.open(s0, "r+", axis_order="F")[:4, :3, :2] = 0
+ Path("c.n5/em/s0/0/0/0").exists()
- ts.open({**s0, "transform": {"input_exclusive_max": [5, 6, 7], "output": [{"input_dimension": 2 \
- n} for n in range(3)]}}).result()
+ n5zarr.open(s0)
- ts.open({"driver": "n5", "kvstore": none}).result()
+ n5zarr.open("none", axis_order="F")
! both
""",
    before_old='s0 = {"driver": "n5", "kvstore": {"driver": "file", "path": "c.n5/em/s0"}}\n'
    'none = {"driver": "file", "path": "none"}\n'
    'document = {"dimensions": [7, 6], "blockSize": [4, 3], "dataType": "uint8",'
    ' "compression": {"type": "raw"}}',
    before_new='s0 = "c.n5/em/s0"\n'
    'document = {"dimensions": [7, 6], "blockSize": [4, 3], "dataType": "uint8",'
    ' "compression": {"type": "raw"}}',
)

REMOTE = Section(
    "Servers",
    """
- ts.open({"driver": "n5", "kvstore": {**s3, "path": "c.n5/em/s0"}}).result()
+ n5zarr.open("s3://lab/c.n5/em/s0", axis_order="F", storage_options=anonymous)
- ts.open({"driver": "n5", "kvstore": {**s3, "path": "c.n5/em/s0"}}).result()
+ store = n5zarr.N5Store("s3://lab/c.n5", backend="obstore", axis_order="F", \
storage_options=unsigned)
+ n5zarr.open(store, path="em/s0")
- ts.open({"driver": "n5", "kvstore": {"driver": "http", "base_url": \
f"{server}/lab/c.n5/em/s0"}}).result()
+ n5zarr.open(f"{server}/lab/c.n5/em/s0", axis_order="F")
- ts.open({"driver": "n5", "kvstore": {**s3, "path": "c.n5/em/s0"}, "context": \
{"s3_request_concurrency": {"limit": 8}}}).result()
+ n5zarr.open(n5zarr.N5Store("s3://lab/c.n5", concurrency=8, axis_order="F", \
storage_options=anonymous), path="em/s0")
- ts.open({"driver": "n5", "kvstore": {**s3, "path": "c.n5/em/s0"}, "context": \
{"s3_request_retries": {"max_retries": 3}}}).result()
+ retries = {"retry_config": {"max_retries": 3}}
+ n5zarr.open("s3://lab/c.n5/em/s0", axis_order="F", backend="obstore", \
storage_options={**unsigned, **retries})
- ts.open({"driver": "n5", "kvstore": {**s3, "path": "c.n5/em/s0"}, "context": {"cache_pool": \
{"total_bytes_limit": 10_000_000}}, "recheck_cached_data": "open"}).result()
+ cache = n5zarr.CacheOptions(bytes=10_000_000, recheck="open")
+ n5zarr.open(n5zarr.N5Store("s3://lab/c.n5", cache=cache, axis_order="F", \
storage_options=anonymous), path="em/s0")
""",
    before_old='server = "http://localhost:9000"\n'
    's3 = {"driver": "s3", "bucket": "lab", "endpoint": server, "aws_region": "us-east-1",'
    ' "aws_credentials": {"type": "anonymous"}}',
    before_new='server = "http://localhost:9000"\n'
    'anonymous = {"anon": True, "endpoint_url": server}  # of s3fs\n'
    'unsigned = {"skip_signature": True, "endpoint": server, "region": "us-east-1",'
    ' "client_options": {"allow_http": True}}  # of obstore',
)

CREATING = Section(
    "Members for creating",
    """
- ts.open(x, create=True, dtype=ts.uint16, shape=[7, 6]).result()
+ n5zarr.create_array("c.n5/x", axis_order="F", dtype="uint16", shape=[7, 6], compression={"type": \
"blosc"})
- ts.open({**x, "metadata": document}, create=True).result()
+ n5zarr.create_array("c.n5/x", axis_order="F", **given, compression="raw")
- ts.open({**x, "metadata": {**document, "axes": ["x", "y"], "units": ["nm", "nm"], "resolution": \
[4, 8]}}, create=True).result()
+ n5zarr.create_array("c.n5/x", axis_order="F", **given, compression="raw", axes=["x", "y"], \
units=["nm", "nm"], resolution=[4, 8])
# n5zarr adds attributes in which other viewers look for axes
- ts.open({**x, "metadata": {**document, "other": [1]}}, create=True).result()
+ n5zarr.create_array("c.n5/x", axis_order="F", **given, compression="raw", attributes={"other": \
[1]})
- ts.open({**x, "kvstore": s0, "open": True, "create": True}).result()
+ n5zarr.open("c.n5/em/s0", axis_order="F")
- ts.open({**x, "kvstore": s0, "create": True, "delete_existing": True, "metadata": \
document}).result()
+ n5zarr.create_array("c.n5/em/s0", axis_order="F", dtype="uint8", shape=[7, 6], chunks=[4, 3], \
compression="raw", overwrite=True)
- ts.open({**x, "metadata": {**document, "compression": {"type": "gzip", "level": 9}}}, \
create=True).result()
+ n5zarr.create_array("c.n5/x", axis_order="F", **given, compression={"type": "gzip", "level": 9})
- ts.open(x, create=True, dtype=ts.bool, shape=[7, 6]).result()
+ n5zarr.create_array("c.n5/x", axis_order="F", dtype=bool, shape=[7, 6])
! old: tensorstore refuses bool; n5zarr writes uint8, and keeps for Zarr that it is bool
- ts.open(x, create=True, dtype=ts.uint16, shape=[200, 300, 100], \
chunk_layout=ts.ChunkLayout(chunk_elements=2**12)).result().chunk_layout.read_chunk.shape
+ n5zarr.create_array("c.n5/x", axis_order="F", dtype="uint16", shape=[200, 300, 100], \
chunk_elements=2**12, compression={"type": "blosc"}).chunks
- ts.open(x, create=True, dtype=ts.uint16, shape=[200, 300, 100], \
chunk_layout=ts.ChunkLayout(chunk_aspect_ratio=[2, 2, 1])).result().chunk_layout.read_chunk.shape
+ n5zarr.create_array("c.n5/x", axis_order="F", dtype="uint16", shape=[200, 300, 100], \
chunk_aspect_ratio=[2, 2, 1], compression={"type": "blosc"}).chunks
- ts.open(x, create=True, dtype=ts.uint16, domain=ts.IndexDomain(labels=["x", "y"], shape=[7, \
6])).result().domain.labels
+ n5zarr.create_array("c.n5/x", axis_order="F", dtype="uint16", shape=[7, 6], axes=["x", "y"], \
compression={"type": "blosc"}).metadata.dimension_names
- ts.open(x, create=True, dtype=ts.uint16, shape=[7, 6], fill_value=7).result()
+ n5zarr.create_array("c.n5/x", axis_order="F", dtype="uint16", shape=[7, 6], fill_value=7)
! old: tensorstore refuses a fill value with N5; n5zarr keeps it for Zarr
""",
    others="""
- ts.open({**x, "create": True, "metadata": document}).result()
+ n5zarr.create_array("c.n5/x", axis_order="F", **given, compression="raw")
- ts.open({**x, "kvstore": s0, "create": True, "metadata": document}).result()
+ n5zarr.create_array("c.n5/em/s0", axis_order="F", dtype="uint8", shape=[7, 6])
! both
- ts.open({**x, "metadata": {**document, "compression": {"type": "bzip2", "blockSize": 5}}}, \
create=True).result()
+ n5zarr.create_array("c.n5/x", axis_order="F", **given, compression={"type": "bzip2", \
"blockSize": 5})
- ts.open({**x, "metadata": {**document, "compression": {"type": "xz", "preset": 4}}}, \
create=True).result()
+ n5zarr.create_array("c.n5/x", axis_order="F", **given, compression={"type": "xz", "preset": 4})
- ts.open({**x, "metadata": {**document, "compression": {"type": "zstd", "level": 5}}}, \
create=True).result()
+ n5zarr.create_array("c.n5/x", axis_order="F", **given, compression={"type": "zstd", "level": 5})
- ts.open({**x, "metadata": {**document, "compression": {"type": "blosc", "cname": "zstd", \
"clevel": 4, "shuffle": 2}}}, create=True).result()
+ n5zarr.create_array("c.n5/x", axis_order="F", **given, compression={"type": "blosc", "cname": \
"zstd", "clevel": 4, "shuffle": 2})
- ts.open(x, create=True, dtype=ts.uint16, shape=[200, 300, \
100]).result().chunk_layout.read_chunk.shape
+ n5zarr.create_array("c.n5/x", axis_order="F", dtype="uint16", shape=[200, 300, 100], \
compression={"type": "blosc"}).chunks
- ts.open(x, create=True, dtype=ts.uint16, shape=[7, 6], dimension_units=["4 nm", "8 nm"]).result()
- [str(unit) for unit in ts.open(x).result().dimension_units]
+ n5zarr.create_array("c.n5/x", axis_order="F", dtype="uint16", shape=[7, 6], units=["nm", "nm"], \
resolution=[4, 8], compression={"type": "blosc"})
+ found = n5zarr.geometry("c.n5/x", axis_order="F")
+ [f"{scale:g} {unit}" for scale, unit in zip(found.scale, found.units)]
# n5zarr adds attributes in which other viewers look for axes
""",
    more=tuple(
        Row(
            f"ts.open(x, create=True, dtype=ts.{name}, shape=[7, 6],"
            f' codec=ts.CodecSpec({{"driver": "n5", "compression": {{"type": "raw"}}}}))'
            ".result()",
            'n5zarr.create_array("c.n5/x", axis_order="F",'
            f' dtype="{name}", shape=[7, 6], compression="raw")',
            listed=False,
        )
        for name in ("int8", "uint32", "int64", "float32", "float64")
    ),
    before_old='x = {"driver": "n5", "kvstore": {"driver": "file", "path": "c.n5/x"}}\n'
    's0 = {"driver": "file", "path": "c.n5/em/s0"}\n'
    'document = {"dimensions": [7, 6], "blockSize": [4, 3], "dataType": "uint8",'
    ' "compression": {"type": "raw"}}',
    before_new='given = {"dtype": "uint8", "shape": [7, 6], "chunks": [4, 3]}',
)

TENSORSTORE = Library(
    name="tensorstore",
    page="tensorstore",
    before_old="import tensorstore as ts",
    before_new="import n5zarr, zarr",
    sections=(OPENING, REMOTE, CREATING, ARRAYS),
)
