"""Projects of BigDataViewer and BigStitcher: the XML, its container, views and interest points.

Knows the XML, the images that it names in N5, OME-Zarr or HDF5, and how they are opened, written,
registered and resaved. The axes that N5's attributes have of a setup are the core's. May import all
packages below; `rooms` names what it adds to them. Must not be imported by any of them.

For users: docs/bigstitcher.md.
"""
