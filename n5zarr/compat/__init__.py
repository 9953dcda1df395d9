"""Names of zarr 2 and z5py.

Knows which names public programs use, and what these do by default, so that programs written for
these libraries run with one changed import; all of N5 is done by what is below. What the libraries
have and no program uses is absent, and the error names n5zarr's way.
May import all packages below but other rooms. Must not be imported by any of them, nor warn.

For users: docs/migration/README.md.
"""
