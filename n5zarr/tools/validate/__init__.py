"""Check containers: documents, blocks, leftovers; and make repairs without loss.

Knows the defects, their severity, and their repairs. May import all packages below `tools`,
`tools.jobs`, and `tools.convert`, which finds the arrays of a report. Must not decode or parse
anything in its own way: what a reader refuses is what is found.
"""
