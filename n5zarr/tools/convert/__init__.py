"""``n5zarr.convert``: copy arrays and groups from one format to another.

Knows sources, destinations and the ways from one to the other. May import all packages below
`tools`, and `tools.jobs`. Must not parse N5: :class:`~n5zarr.N5Store` presents it as Zarr.
"""
