"""What is in a container, for users: nodes, attributes, axes and levels, described and changed.

Knows the functions of users for attributes and axes, the attributes of groups of levels, and how a
container is described as plain data. May import `store` and what it imports. Must not read or write
blocks.
"""
