"""The zarr store of a container, and other views of a whole container.

Knows zarr's interfaces for stores (`n5_store`) and codecs (`block_codec`), and that of mappings
(`mapping`). Finds and opens the root of a container (`location`), reads single blocks (`blocks`)
and describes a container (`inspect`). May import everything below: `container`, `storage` and what
they import. Must not decide anything about documents or blocks.
"""
