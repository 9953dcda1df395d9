"""Show containers: to people, in browsers, in programs for images.

Knows what of a container is an image, how it is shown, and what viewers want to be told.
May import all packages above it. Must not parse N5 or Zarr, and must not write to a container.
"""
