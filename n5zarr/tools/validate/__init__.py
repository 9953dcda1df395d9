"""Check containers: documents, blocks, leftovers; and make repairs without loss.

Knows the defects, their severity, and their repairs. May import all packages below
it, and `n5zarr.tools.jobs`. Must not decode or parse anything in its own way: what a reader refuses
is what is found.
"""
