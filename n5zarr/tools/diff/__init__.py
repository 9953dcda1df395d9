"""``n5zarr diff``: compare two arrays, or two groups with all nodes below, N5 or Zarr.

Knows arrays, groups and their axes, whoever stores them. May import all packages below `tools`, and
`tools.jobs`. Must not know how blocks are stored.
"""
