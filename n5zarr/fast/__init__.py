"""What makes local containers and servers fast: many blocks at once, in C and on threads.

Knows how to read and write blocks in C (`kernel`) and in Python (`python_blocks`), which is the
reference for the kernel; the arrays that use both without zarr's event loop (`array`), and the
codec pipeline that zarr uses for other arrays of a store (`pipeline`). May import `arrays` and
everything below. Must not have its own rules for blocks: a block that is not ordinary, as the head
of `_kernel.c` defines it, goes to `container` and `codecs`.

A room: without it, zarr's own pipeline does the work.
"""
