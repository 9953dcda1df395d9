"""Show containers: to people, in browsers, in programs for images.

Knows what of a container is an image, how it is shown, and what viewers want to be told.
May import everything but the command line; only :mod:`n5zarr.cli` imports it.
"""
