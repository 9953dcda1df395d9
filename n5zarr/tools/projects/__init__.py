"""Write projects of BigDataViewer and BigStitcher from a user's arrays.

Knows which arrays are views, and what a project says of them. May import all packages above
`tools`, and `tools/convert`, `tools/pyramid`, `tools/jobs`. Must not write XML or blocks itself.
"""
