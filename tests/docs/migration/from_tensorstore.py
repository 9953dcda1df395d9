"""List rows of tensorstore's N5 driver: each member of its spec, and calls of its arrays."""

from __future__ import annotations

from tests.docs.migration.from_tensorstore_arrays import ARRAYS
from tests.docs.migration.model import Library, Row, Section

__all__ = ["TENSORSTORE"]

BLOSC = 'compression={"type": "blosc"}'  # tensorstore's default


def opened(members: str = "", options: str = "") -> str:
    """Return a call of tensorstore that opens ``em/s0`` with more members of a spec."""
    return f"ts.open({{**s0{', ' + members if members else ''}}}{options}).result()"


def created(members: str) -> str:
    """Return a call of tensorstore that creates ``x`` with more members of a spec."""
    return f"ts.open({{**x, {members}}}, create=True).result()"


def make(arguments: str) -> str:
    return f'n5zarr.create_array("c.n5/x", axis_order="F", {arguments})'


OPENING = Section(
    "Members for opening",
    (
        Row(
            'ts.open({"driver": "n5", "kvstore": {"driver": "file", "path": "c.n5/em/s0"}}).result()',  # noqa: E501
            'n5zarr.open("c.n5/em/s0", axis_order="F")',
        ),
        Row(
            'ts.open({"driver": "n5", "kvstore": {"driver": "file", "path": "c.n5/em/s0"}}).result()',  # noqa: E501
            'n5zarr.open("c.n5/em/s0")',
            "the usual order of n5zarr: z, y, x",
        ),
        Row(
            'ts.open({"driver": "n5", "kvstore": {"driver": "file", "path": "c.n5"},'
            ' "path": "em/s0"}).result()',
            'n5zarr.open("c.n5", path="em/s0", axis_order="F")',
            listed=False,
        ),
        Row(
            'ts.open(f"file://{Path.cwd()}/c.n5/em/s0/|n5:").result()',
            'n5zarr.open(f"file://{Path.cwd()}/c.n5|n5:em/s0", axis_order="F")',
        ),
        Row(
            'ts.open({"driver": "n5", "kvstore": "memory://m.n5/x/"}, create=True, dtype=ts.uint16,'
            " shape=[4, 5]).result().shape",
            'n5zarr.create_array("memory://m.n5/x", axis_order="F", dtype="uint16",'
            " shape=[4, 5]).shape",
        ),
        Row(
            'kv = ts.KvStore.open(f"file://{Path.cwd()}/c.n5/em/s0/").result()\n'
            'ts.open({"driver": "n5", "kvstore": kv.spec().to_json()}).result()',
            "from zarr.storage import LocalStore\n"
            'n5zarr.open(LocalStore("c.n5"), path="em/s0", axis_order="F")',
            listed=False,
        ),
        Row(opened('"dtype": "uint16"'), 'n5zarr.open(s0, axis_order="F", dtype="uint16")'),
        Row(
            opened('"dtype": "uint8"'),
            'n5zarr.open(s0, axis_order="F", dtype="uint8")',
            raises="both",
            listed=False,
        ),
        Row(opened('"schema": {"rank": 3}'), 'n5zarr.open(s0, axis_order="F", ndim=3)'),
        Row(
            opened('"schema": {"rank": 2}'),
            'n5zarr.open(s0, axis_order="F", ndim=2)',
            raises="both",
            listed=False,
        ),
        Row(
            opened('"schema": {"dtype": "uint16"}'),
            'n5zarr.open(s0, axis_order="F", dtype="uint16")',
            listed=False,
        ),
        Row(
            opened('"schema": {"domain": {"shape": [7, 6, 5]}}'),
            'n5zarr.open(s0, axis_order="F", shape=(7, 6, 5))',
        ),
        Row(
            opened('"schema": {"domain": {"shape": [7, 6, 4]}}'),
            'n5zarr.open(s0, axis_order="F", shape=(7, 6, 4))',
            raises="both",
            listed=False,
        ),
        Row(
            opened('"schema": {"chunk_layout": {"chunk": {"shape": [4, 3, 2]}}}'),
            'n5zarr.open(s0, axis_order="F", chunks=(4, 3, 2))',
        ),
        Row(
            opened(
                '"schema": {"codec": {"driver": "n5", "compression": {"type": "gzip", "level": 5}}}'
            ),
            'n5zarr.open(s0, axis_order="F", compression={"type": "gzip", "level": 5})',
        ),
        Row(
            opened('"schema": {"codec": {"driver": "n5", "compression": {"type": "raw"}}}'),
            'n5zarr.open(s0, axis_order="F", compression={"type": "raw"})',
            raises="both",
            listed=False,
        ),
        Row(
            opened('"schema": {"fill_value": 0}'),
            'n5zarr.open(s0, axis_order="F")',
            "tensorstore refuses a fill value with N5",
            raises="old",
        ),
        Row(
            opened('"schema": {"dimension_units": ["4 nm", "4 nm", "40 nm"]}'),
            'found = n5zarr.geometry(s0, axis_order="F")\n'
            'assert (found.scale, found.units) == ((4, 4, 40), ("nm", "nm", "nm"))\n'
            'n5zarr.open(s0, axis_order="F")',
        ),
        Row(
            opened('"metadata": {"dimensions": [7, 6, 5]}'),
            'n5zarr.open(s0, axis_order="F", shape=(7, 6, 5))',
        ),
        Row(
            opened('"metadata": {"blockSize": [4, 3, 2]}'),
            'n5zarr.open(s0, axis_order="F", chunks=(4, 3, 2))',
            listed=False,
        ),
        Row(
            opened('"metadata": {"dataType": "uint16"}'),
            'n5zarr.open(s0, axis_order="F", dtype="uint16")',
            listed=False,
        ),
        Row(
            opened('"metadata": {"compression": {"type": "gzip", "level": 5}}'),
            'n5zarr.open(s0, axis_order="F", compression={"type": "gzip", "level": 5})',
            listed=False,
        ),
        Row(
            opened('"metadata": {"dataType": "int16"}'),
            'n5zarr.open(s0, axis_order="F", dtype="int16")',
            raises="both",
            listed=False,
        ),
        Row(opened('"open": True'), 'n5zarr.open(s0, axis_order="F")', listed=False),
        Row("ts.open(s0, read=True).result()", 'n5zarr.open(s0, "r", axis_order="F")'),
        Row("ts.open(s0, read=True, write=True).result()", 'n5zarr.open(s0, "r+", axis_order="F")'),
        Row(
            "ts.open(s0, read=True).result()[0, 0, 0].write(1).result()",
            'n5zarr.open(s0, "r", axis_order="F")[0, 0, 0] = 1',
            raises="both",
            listed=False,
        ),
        Row(
            opened('"context": {"cache_pool": {"total_bytes_limit": 10_000_000}}'),
            'n5zarr.open(s0, axis_order="F")',
        ),
        Row(
            opened('"context": {"data_copy_concurrency": {"limit": 2}}'),
            'with zarr.config.set({"threading.max_workers": 2}):\n'
            '    a = n5zarr.open(s0, axis_order="F")\na',
            listed=False,
        ),
        Row(
            opened('"context": {"file_io_concurrency": {"limit": 4}}'),
            'zarr.open_array(n5zarr.N5Store("c.n5", concurrency=4, axis_order="F"), path="em/s0")',
        ),
        Row(
            opened('"context": {"file_io_sync": False}, "open": True'),
            'n5zarr.open(s0, axis_order="F", durability="atomic")',
        ),
        Row(
            opened('"context": {"file_io_sync": True}'),
            'n5zarr.open(s0, axis_order="F", durability="durable")',
        ),
        Row(
            opened('"context": {"file_io_locking": {"mode": "non_atomic"}}'),
            'n5zarr.open(s0, axis_order="F", durability="overwrite")',
        ),
        Row(
            opened('"recheck_cached_metadata": "open"'),
            'n5zarr.CacheOptions(recheck="open")\nn5zarr.open(s0, axis_order="F")',
        ),
        Row(
            opened('"recheck_cached_metadata": False'),
            'n5zarr.CacheOptions(recheck=False)\nn5zarr.open(s0, axis_order="F")',
            listed=False,
        ),
        Row(
            opened('"recheck_cached_data": True'),
            'n5zarr.CacheOptions(recheck=True)\nn5zarr.open(s0, axis_order="F")',
        ),
        Row(opened('"cache_pool": "cache_pool"'), 'n5zarr.open(s0, axis_order="F")', listed=False),
        Row(
            opened('"data_copy_concurrency": "data_copy_concurrency"'),
            'n5zarr.open(s0, axis_order="F")',
            listed=False,
        ),
        Row(
            opened('"fill_missing_data_reads": False') + "[5, 4, 4].read().result()",
            'n5zarr.open(s0, axis_order="F", fill_missing=False)[5, 4, 4]',
            raises="both",
        ),
        Row(
            opened('"store_data_equal_to_fill_value": True') + "[:4, :3, :2].write(0).result()\n"
            'Path("c.n5/em/s0/0/0/0").exists()',
            'with zarr.config.set({"array.write_empty_chunks": True}):\n'
            '    n5zarr.open(s0, "r+", axis_order="F")[:4, :3, :2] = 0\n'
            'Path("c.n5/em/s0/0/0/0").exists()',
        ),
        Row(
            opened() + '[:4, :3, :2].write(0).result()\nPath("c.n5/em/s0/0/0/0").exists()',
            'n5zarr.open(s0, "r+", axis_order="F")[:4, :3, :2] = 0\n'
            'Path("c.n5/em/s0/0/0/0").exists()',
            listed=False,
        ),
        Row(
            opened(
                '"transform": {"input_inclusive_min": [1, 0, 0],'
                ' "input_exclusive_max": [4, 6, 5],'
                ' "output": [{"input_dimension": n} for n in range(3)]}'
            ),
            'n5zarr.open(s0, axis_order="F")[1:4, 0:6, 0:5]',
        ),
        Row(
            opened(
                '"transform": {"input_exclusive_max": [5, 6, 7],'
                ' "output": [{"input_dimension": 2 - n} for n in range(3)]}'
            ),
            "n5zarr.open(s0)",
            listed=False,
        ),
        Row(
            'ts.open({"driver": "n5", "kvstore": none, "metadata": document},'
            " open=True, assume_metadata=True).result().shape",
            'n5zarr.open("none", assume_metadata=document, axis_order="F").shape',
        ),
        Row(
            'ts.open({"driver": "n5", "kvstore": none}).result()',
            'n5zarr.open("none", axis_order="F")',
            raises="both",
            listed=False,
        ),
    ),
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
    (
        Row(
            'ts.open({"driver": "n5", "kvstore": {**s3, "path": "c.n5/em/s0"}}).result()',
            'n5zarr.open("s3://lab/c.n5/em/s0", axis_order="F", storage_options=anonymous)',
        ),
        Row(
            'ts.open({"driver": "n5", "kvstore": {**s3, "path": "c.n5/em/s0"}}).result()',
            'store = n5zarr.N5Store("s3://lab/c.n5", backend="obstore", axis_order="F",'
            " storage_options=unsigned)\n"
            'n5zarr.open(store, path="em/s0")',
        ),
        Row(
            'ts.open({"driver": "n5", "kvstore": {"driver": "http",'
            ' "base_url": f"{server}/lab/c.n5/em/s0"}}).result()',
            'n5zarr.open(f"{server}/lab/c.n5/em/s0", axis_order="F")',
        ),
        Row(
            'ts.open({"driver": "n5", "kvstore": {**s3, "path": "c.n5/em/s0"},'
            ' "context": {"s3_request_concurrency": {"limit": 8}}}).result()',
            'n5zarr.open(n5zarr.N5Store("s3://lab/c.n5", concurrency=8, axis_order="F",'
            ' storage_options=anonymous), path="em/s0")',
        ),
        Row(
            'ts.open({"driver": "n5", "kvstore": {**s3, "path": "c.n5/em/s0"},'
            ' "context": {"s3_request_retries": {"max_retries": 3}}}).result()',
            'retries = {"retry_config": {"max_retries": 3}}\n'
            'n5zarr.open("s3://lab/c.n5/em/s0", axis_order="F", backend="obstore",'
            " storage_options={**unsigned, **retries})",
        ),
        Row(
            'ts.open({"driver": "n5", "kvstore": {**s3, "path": "c.n5/em/s0"},'
            ' "context": {"cache_pool": {"total_bytes_limit": 10_000_000}},'
            ' "recheck_cached_data": "open"}).result()',
            'cache = n5zarr.CacheOptions(bytes=10_000_000, recheck="open")\n'
            'n5zarr.open(n5zarr.N5Store("s3://lab/c.n5", cache=cache, axis_order="F",'
            ' storage_options=anonymous), path="em/s0")',
        ),
    ),
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
    (
        Row(
            "ts.open(x, create=True, dtype=ts.uint16, shape=[7, 6]).result()",
            make('dtype="uint16", shape=[7, 6], compression={"type": "blosc"}'),
        ),
        Row(created('"metadata": document'), make('**given, compression="raw"')),
        Row(
            created(
                '"metadata": {**document, "axes": ["x", "y"], "units": ["nm", "nm"],'
                ' "resolution": [4, 8]}'
            ),
            make(
                '**given, compression="raw", axes=["x", "y"], units=["nm", "nm"], resolution=[4, 8]'
            ),
            "n5zarr adds attributes in which other viewers look for axes",
        ),
        Row(
            created('"metadata": {**document, "other": [1]}'),
            make('**given, compression="raw", attributes={"other": [1]}'),
        ),
        Row(
            created('"create": True, "metadata": document').replace(", create=True", ""),
            make('**given, compression="raw"'),
            listed=False,
        ),
        Row(
            'ts.open({**x, "kvstore": s0, "create": True, "metadata": document}).result()',
            'n5zarr.create_array("c.n5/em/s0", axis_order="F", dtype="uint8", shape=[7, 6])',
            raises="both",
            listed=False,
        ),
        Row(
            'ts.open({**x, "kvstore": s0, "open": True, "create": True}).result()',
            'n5zarr.open("c.n5/em/s0", axis_order="F")',
        ),
        Row(
            'ts.open({**x, "kvstore": s0, "create": True, "delete_existing": True,'
            ' "metadata": document}).result()',
            'n5zarr.create_array("c.n5/em/s0", axis_order="F", dtype="uint8", shape=[7, 6],'
            ' chunks=[4, 3], compression="raw", overwrite=True)',
        ),
        *(
            Row(
                created(f'"metadata": {{**document, "compression": {compression}}}'),
                make(f"**given, compression={compression}"),
                listed="gzip" in compression,
            )
            for compression in (
                '{"type": "gzip", "level": 9}',
                '{"type": "bzip2", "blockSize": 5}',
                '{"type": "xz", "preset": 4}',
                '{"type": "zstd", "level": 5}',
                '{"type": "blosc", "cname": "zstd", "clevel": 4, "shuffle": 2}',
            )
        ),
        *(
            Row(
                f"ts.open(x, create=True, dtype=ts.{name}, shape=[7, 6],"
                f' codec=ts.CodecSpec({{"driver": "n5", "compression": {{"type": "raw"}}}}))'
                ".result()",
                make(f'dtype="{name}", shape=[7, 6], compression="raw"'),
                listed=False,
            )
            for name in ("int8", "uint32", "int64", "float32", "float64")
        ),
        Row(
            "ts.open(x, create=True, dtype=ts.bool, shape=[7, 6]).result()",
            make("dtype=bool, shape=[7, 6]"),
            "tensorstore refuses bool; n5zarr writes uint8, and keeps for Zarr that it is bool",
            raises="old",
        ),
        Row(
            "ts.open(x, create=True, dtype=ts.uint16, shape=[200, 300, 100]).result()"
            ".chunk_layout.read_chunk.shape",
            make(f'dtype="uint16", shape=[200, 300, 100], {BLOSC}') + ".chunks",
            listed=False,
        ),
        Row(
            "ts.open(x, create=True, dtype=ts.uint16, shape=[200, 300, 100],"
            " chunk_layout=ts.ChunkLayout(chunk_elements=2**12)).result()"
            ".chunk_layout.read_chunk.shape",
            make(f'dtype="uint16", shape=[200, 300, 100], chunk_elements=2**12, {BLOSC}')
            + ".chunks",
        ),
        Row(
            "ts.open(x, create=True, dtype=ts.uint16, shape=[200, 300, 100],"
            " chunk_layout=ts.ChunkLayout(chunk_aspect_ratio=[2, 2, 1])).result()"
            ".chunk_layout.read_chunk.shape",
            make(f'dtype="uint16", shape=[200, 300, 100], chunk_aspect_ratio=[2, 2, 1], {BLOSC}')
            + ".chunks",
        ),
        Row(
            'ts.open(x, create=True, dtype=ts.uint16, domain=ts.IndexDomain(labels=["x", "y"],'
            " shape=[7, 6])).result().domain.labels",
            make(f'dtype="uint16", shape=[7, 6], axes=["x", "y"], {BLOSC}')
            + ".metadata.dimension_names",
        ),
        Row(
            "ts.open(x, create=True, dtype=ts.uint16, shape=[7, 6],"
            ' dimension_units=["4 nm", "8 nm"]).result()\n'
            "[str(unit) for unit in ts.open(x).result().dimension_units]",
            make(f'dtype="uint16", shape=[7, 6], units=["nm", "nm"], resolution=[4, 8], {BLOSC}')
            + "\n"
            'found = n5zarr.geometry("c.n5/x", axis_order="F")\n'
            '[f"{scale:g} {unit}" for scale, unit in zip(found.scale, found.units)]',
            "n5zarr adds attributes in which other viewers look for axes",
            listed=False,
        ),
        Row(
            "ts.open(x, create=True, dtype=ts.uint16, shape=[7, 6], fill_value=7).result()",
            make('dtype="uint16", shape=[7, 6], fill_value=7'),
            "tensorstore refuses a fill value with N5; n5zarr keeps it for Zarr",
            raises="old",
        ),
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
