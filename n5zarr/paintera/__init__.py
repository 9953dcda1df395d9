"""Label multisets and label sources of Paintera: all labels of each voxel, and their tables.

Knows how multisets are read, written, copied and combined. The codec of multisets and their
recognition in documents are the core's. May import all packages below; `rooms` names what it adds
to them. Must not be imported by any of them.

For users: docs/label-multisets.md.
"""
