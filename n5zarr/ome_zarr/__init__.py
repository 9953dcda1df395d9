"""OME-Zarr as a source: shown as N5, converted to N5, with pyramids added, and validated.

Knows the layout of its groups and arrays, and its rules. What the image model writes of its
documents is that of `images`. May import all packages below; `rooms` names what it adds to them.
Must not be imported by any of them.

For users: docs/ome-zarr.md.
"""
