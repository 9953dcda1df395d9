"""The zarr arrays and groups that ``n5zarr.open`` returns.

Knows how to open and create them (`opening`, `creating`), and boxes of their elements. For tools,
also which chunks of any array are stored, and how chunks of Zarr are encoded. May import `store`
and everything below. Must not have its own rules for blocks, and not know what makes them fast,
which is the room `fast`.
"""
