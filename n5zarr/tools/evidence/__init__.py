"""Reports of conversions, checks and comparisons, which others can verify with numpy alone.

Knows what a report holds, and how values are counted and hashed. May import all packages below
`tools`, and `tools.jobs`. Must not know what a run does.
"""
