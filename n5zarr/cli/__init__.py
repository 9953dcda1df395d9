"""The command ``n5zarr``.

Knows arguments, exit statuses and how results look on a terminal. May import everything. Must not
hold logic: each command calls a function of the library.
"""
