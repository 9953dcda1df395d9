"""Check containers: documents, blocks, leftovers; and repair what can be repaired without loss.

Knows which defects there are, how severe each is, and what mends it. May import all packages above
it, and `n5zarr.tools.jobs`. Must not decode or parse anything in its own way: what a reader refuses
is what is found.
"""
