"""List rows of tensorstore: methods and properties of its arrays."""

from __future__ import annotations

from tests.docs.migration.model import Row, Section

__all__ = ["ARRAYS"]

ARRAYS = Section(
    "Arrays",
    (
        Row("a.read().result()", "a[:]"),
        Row("np.asarray(a)", "np.asarray(a)"),
        Row("a[1:4, 2].read().result()", "a[1:4, 2]"),
        Row("a[::2].read().result()", "a[::2]"),
        Row("a[..., 1].read().result()", "a[..., 1]"),
        Row(
            "a[[0, 2], [1, 3]].read().result()",
            "a.vindex[[0, 2], [1, 3], :]",
            "zarr's `vindex` takes one list for each axis",
            raises="new",
        ),
        Row(
            "a[[0, 2], [1, 3], [4, 1]].read().result()",
            "a.vindex[[0, 2], [1, 3], [4, 1]]",
            listed=False,
        ),
        Row("a.oindex[[0, 2], [1, 3]].read().result()", "a.oindex[[0, 2], [1, 3]]"),
        Row("a[a.read().result() > 200].read().result()", "a.get_mask_selection(a[:] > 200)"),
        Row("a.T.read().result()", 'n5zarr.open("c.n5/em/s0")[:]'),
        Row("a.read(order='F').result()", "np.asfortranarray(a[:])"),
        Row("a[1:3].write(7).result()", "a[1:3] = 7"),
        Row("a.write(values.T[::-1]).result()", "a[:] = values.T[::-1]"),
        Row("a[0, 0, 0] = 9", "a[0, 0, 0] = 9"),
        Row("with ts.Transaction() as txn:\n    a.with_transaction(txn)[0] = 9", "a[0] = 9"),
        Row(
            "a.with_transaction(ts.Transaction(atomic=True))[0].write(9).result()",
            "",
            "zarr has no transactions; tensorstore refuses this one in local files",
            raises="old",
        ),
        Row("a.shape", "a.shape"),
        Row("a.rank", "a.ndim"),
        Row("a.size", "a.size"),
        Row("a.dtype.name", "a.dtype.name"),
        Row("a.domain.origin, a.domain.shape", "(0,) * a.ndim, a.shape"),
        Row("a.domain.labels", 'a.metadata.dimension_names or ("",) * a.ndim'),
        Row(
            "[str(unit) for unit in a.dimension_units]",
            "found = n5zarr.geometry(a)\n"
            '[f"{scale:g} {unit}" for scale, unit in zip(found.scale, found.units)]',
        ),
        Row("a.chunk_layout.read_chunk.shape", "a.chunks"),
        Row(
            "a.fill_value is None",
            "a.fill_value is None",
            "zarr always has a fill value: 0 with N5",
        ),
        Row(
            'a.codec.to_json()["compression"]',
            'n5zarr.get_attribute("c.n5", "em/s0", "compression")',
        ),
        Row(
            'a.spec().to_json()["metadata"]["blockSize"]',
            'n5zarr.get_attribute("c.n5", "em/s0", "blockSize")',
        ),
        Row("a.mode", '"r" + "w" * (not a.read_only)', listed=False),
        Row("a.readable, a.writable", "True, not a.read_only"),
        Row("a.kvstore.path.endswith('em/s0/')", "a.path.endswith('em/s0')", listed=False),
        Row(
            "a.resize(exclusive_max=[7, 6, 3]).result()\nts.open(spec).result()",
            "a.resize((7, 6, 3))\na",
        ),
        Row(
            "a.resize(exclusive_max=[7, 6, 8], expand_only=True).result()\nts.open(spec).result()",
            "a.resize((7, 6, 8))\na",
            listed=False,
        ),
        Row(
            "a.resize(exclusive_max=[7, 6, 3], expand_only=True).result()",
            "assert 3 >= a.shape[2]",
            "zarr has no such condition",
            raises="both",
        ),
        Row(
            "a.storage_statistics(query_fully_stored=True).result().fully_stored",
            "a.nchunks_initialized == a.nchunks",
        ),
        Row(
            "a.storage_statistics(query_not_stored=True).result().not_stored",
            "a.nchunks_initialized == 0",
            listed=False,
        ),
        Row("a[ts.d[0].translate_to[10]][10:12].read().result()", "a[0:2]"),
        Row("a[ts.d[0, 2].transpose[2, 0]].read().result()", "a[:].transpose(2, 1, 0)"),
        Row("a.vindex[[0, 2], [1, 3]].read().result()", "a[:][[0, 2], [1, 3]]"),
        Row("ts.cast(a, ts.float32).read().result()", "a[:].astype('float32')"),
        Row("ts.downsample(a, [2, 1, 1], 'stride').read().result()", "a[::2]"),
        Row("ts.concat([a, a], axis=0).read().result()", "np.concatenate([a, a])"),
        Row("ts.stack([a, a]).read().result()", "np.stack([a, a])"),
        Row(
            "batch = ts.Batch()\nfuture = a.read(batch=batch)\nbatch.submit()\nfuture.result()",
            "a[:]",
        ),
    ),
    before_old='spec = {"driver": "n5", "kvstore": {"driver": "file", "path": "c.n5/em/s0"}}\n'
    "a = ts.open(spec).result()",
    before_new='a = n5zarr.open("c.n5/em/s0", "r+", axis_order="F")',
)
