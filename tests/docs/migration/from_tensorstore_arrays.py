"""List rows of tensorstore: methods and properties of its arrays."""

from __future__ import annotations

from tests.docs.migration.model import Section

__all__ = ["ARRAYS"]

ARRAYS = Section(
    "Arrays",
    """
- a.read().result()
+ a[:]
= np.asarray(a)
- a[1:4, 2].read().result()
+ a[1:4, 2]
- a[::2].read().result()
+ a[::2]
- a[..., 1].read().result()
+ a[..., 1]
- a[[0, 2], [1, 3]].read().result()
+ a.vindex[[0, 2], [1, 3], :]
! new: zarr's `vindex` takes one list for each axis
- a.oindex[[0, 2], [1, 3]].read().result()
+ a.oindex[[0, 2], [1, 3]]
- a[a.read().result() > 200].read().result()
+ a.get_mask_selection(a[:] > 200)
- a.T.read().result()
+ n5zarr.open("c.n5/em/s0")[:]
- a.read(order='F').result()
+ np.asfortranarray(a[:])
- a[1:3].write(7).result()
+ a[1:3] = 7
- a.write(values.T[::-1]).result()
+ a[:] = values.T[::-1]
= a[0, 0, 0] = 9
- with ts.Transaction() as txn:
-     a.with_transaction(txn)[0] = 9
+ a[0] = 9
- a.with_transaction(ts.Transaction(atomic=True))[0].write(9).result()
! old: zarr has no transactions; tensorstore refuses this one in local files
= a.shape
- a.rank
+ a.ndim
= a.size
= a.dtype.name
- a.domain.origin, a.domain.shape
+ (0,) * a.ndim, a.shape
- a.domain.labels
+ a.metadata.dimension_names or ("",) * a.ndim
- [str(unit) for unit in a.dimension_units]
+ found = n5zarr.geometry(a)
+ [f"{scale:g} {unit}" for scale, unit in zip(found.scale, found.units)]
- a.chunk_layout.read_chunk.shape
+ a.chunks
= a.fill_value is None
# zarr always has a fill value: 0 with N5
- a.codec.to_json()["compression"]
+ n5zarr.get_attribute("c.n5", "em/s0", "compression")
- a.spec().to_json()["metadata"]["blockSize"]
+ n5zarr.get_attribute("c.n5", "em/s0", "blockSize")
- a.readable, a.writable
+ True, not a.read_only
- a.resize(exclusive_max=[7, 6, 3]).result()
- ts.open(spec).result()
+ a.resize((7, 6, 3))
+ a
- a.resize(exclusive_max=[7, 6, 3], expand_only=True).result()
+ assert 3 >= a.shape[2]
! both: zarr has no such condition
- a.storage_statistics(query_fully_stored=True).result().fully_stored
+ a.nchunks_initialized == a.nchunks
- a[ts.d[0].translate_to[10]][10:12].read().result()
+ a[0:2]
- a[ts.d[0, 2].transpose[2, 0]].read().result()
+ a[:].transpose(2, 1, 0)
- a.vindex[[0, 2], [1, 3]].read().result()
+ a[:][[0, 2], [1, 3]]
- ts.cast(a, ts.float32).read().result()
+ a[:].astype('float32')
- ts.downsample(a, [2, 1, 1], 'stride').read().result()
+ a[::2]
- ts.concat([a, a], axis=0).read().result()
+ np.concatenate([a, a])
- ts.stack([a, a]).read().result()
+ np.stack([a, a])
- batch = ts.Batch()
- future = a.read(batch=batch)
- batch.submit()
- future.result()
+ a[:]
""",
    others="""
- a[[0, 2], [1, 3], [4, 1]].read().result()
+ a.vindex[[0, 2], [1, 3], [4, 1]]
- a.mode
+ "r" + "w" * (not a.read_only)
- a.kvstore.path.endswith('em/s0/')
+ a.path.endswith('em/s0')
- a.resize(exclusive_max=[7, 6, 8], expand_only=True).result()
- ts.open(spec).result()
+ a.resize((7, 6, 8))
+ a
- a.storage_statistics(query_not_stored=True).result().not_stored
+ a.nchunks_initialized == 0
""",
    before_old='spec = {"driver": "n5", "kvstore": {"driver": "file", "path": "c.n5/em/s0"}}\n'
    "a = ts.open(spec).result()",
    before_new='a = n5zarr.open("c.n5/em/s0", "r+", axis_order="F")',
)
