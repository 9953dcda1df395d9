"""The fast path: the zarr arrays and groups that ``n5zarr.open`` returns.

Knows how to open and create them (`opening`, `creating`), and to read and write many blocks at
once: in C (`kernel`), and in Python (`pipeline`), which is the reference for the kernel. For tools,
also which chunks of any array are stored, and how chunks of Zarr are encoded. May import `store`
and everything below. Must not have its own rules for blocks: a block that is not ordinary, as the
head of `_kernel.c` defines it, goes to `container` and `codecs`.
"""
