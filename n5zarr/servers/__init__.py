"""Containers on servers: object stores and web servers, by their URLs, through obstore and fsspec.

Knows how to choose a library for a URL and its options (`opening`, `translated`), what each library
does badly and how to do it well (`url_store`, `object_store`, `web_store`, `ranges`), and what its
errors mean (`errors`, `served`). May import `storage` and what is below it. Must not know what a
dataset, a chunk or a document is.

A room: without it, local containers and any zarr store of a user work, in zarr's ways: with zarr's
errors, and updates that are not conditional. Users find it in docs/remote.md.
"""
