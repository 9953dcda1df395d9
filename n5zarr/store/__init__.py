"""The zarr store of a container, and other views of a whole container.

Knows zarr's interfaces for stores (`n5_store`) and codecs (`block_codec`). Tells what is at a
location (`locating`), finds and opens the root of a container (`location`), and reads single blocks
(`blocks`). May import `container`, `storage` and what they import; `rooms` names the formats. Must
not decide anything about documents or blocks.
"""
