"""What is in a container, for users: nodes, attributes, axes and levels, described and changed.

Knows the public functions and their plain data. May import `store` and everything below it. Must
not decide anything about documents or blocks.
"""
