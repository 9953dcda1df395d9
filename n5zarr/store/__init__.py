"""The store that zarr sees, and what else shows a container as a whole.

Knows zarr's interface of stores (`n5_store`), of codecs (`block_codec`) and of mappings
(`mapping`), where the root of a container is (`location`), and what is in one (`inspect`). May
import everything below: `container`, `storage` and what they import. Must not decide anything about
documents or blocks.
"""
