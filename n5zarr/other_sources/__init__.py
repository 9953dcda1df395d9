"""Sources of a conversion in other formats: HDF5 and TIFF, read by their own libraries.

Knows how their arrays, axes and attributes become those of a source. May import all packages below;
`rooms` names what it adds to them. Must not be imported by any of them.

For users: docs/convert.md.
"""
