"""The tables of a pack in each version of its format, and how its records are compressed.

Version 2 compresses neighbouring records together, in blocks: a command, a recipe and an
environment then cost bytes once, not once a record. Version 1, which compressed each record by
itself with a dictionary, is only read.
"""

import lzma
import sqlite3
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

MAX_RECORD_BYTES = 2**24  # bytes of one record's file, and of anything else in a pack
BLOCK_BYTES = 2**18  # bytes of a block: a larger one saves little, and takes longer to read
XZ_PRESET = 6
CELLS_AND_RECIPES = {
    "recipes": "CREATE TABLE recipes (id INTEGER PRIMARY KEY, recipe TEXT NOT NULL UNIQUE)",
    "cells": (
        "CREATE TABLE cells (id INTEGER PRIMARY KEY, folder TEXT NOT NULL, key TEXT NOT NULL, "
        "domain TEXT NOT NULL, dataset TEXT NOT NULL, loss TEXT NOT NULL, loss_code TEXT NOT NULL, "
        "params TEXT NOT NULL, recipe INTEGER NOT NULL, protocol TEXT NOT NULL, "
        "data_hash TEXT NOT NULL, UNIQUE (folder, key))"
    ),
}
RECORD_COLUMNS = (
    "CREATE TABLE records (cell INTEGER NOT NULL, seed INTEGER NOT NULL, status TEXT NOT NULL, "
    "seconds REAL, sha256 TEXT NOT NULL, {}, PRIMARY KEY (cell, seed))"
)
Decompress = Callable[[bytes], bytes]


class PackFormat(NamedTuple):
    """One version of the format."""

    tables: dict[str, str]
    place: str  # SQL for a record's block, and its first byte and number of bytes in it
    find_block: str  # SQL for a block's bytes
    decompressor: Callable[[sqlite3.Connection], Decompress]


def compressed(data: bytes) -> bytes:
    """Compress a block. Its bytes need no check of their own: the pack's name is their hash."""
    return lzma.compress(data, check=lzma.CHECK_NONE, preset=XZ_PRESET)


def decompressed(data: bytes) -> bytes:
    """Return the bytes of a block that `compressed` made.

    Raises:
        ValueError, lzma.LZMAError: it is no block, or is larger than anything in a pack.
    """
    return whole(lzma.LZMADecompressor(lzma.FORMAT_XZ), data)


def inflated(data: bytes, dictionary: bytes = b"") -> bytes:
    """Decompress a record of version 1.

    Raises:
        ValueError, zlib.error: it is no record, or is larger than anything in a pack.
    """
    return whole(zlib.decompressobj(-15, dictionary), data)


def whole(how: Any, data: bytes) -> bytes:
    """Return what is compressed, up to a limit, or raise ValueError."""
    found: bytes = how.decompress(data, MAX_RECORD_BYTES)
    if not how.eof or how.unused_data:
        raise ValueError("what is compressed is cut off or too long")
    return found


def with_dictionary(base: sqlite3.Connection) -> Decompress:
    """Return the function that decompresses records of a pack of version 1."""
    ((dictionary,),) = base.execute("SELECT deflated FROM dictionary")
    return partial(inflated, dictionary=inflated(dictionary))


FORMATS = {
    1: PackFormat(
        {
            "dictionary": "CREATE TABLE dictionary (deflated BLOB NOT NULL)",
            **CELLS_AND_RECIPES,
            "records": RECORD_COLUMNS.format("file BLOB NOT NULL"),
        },
        f"records.rowid, 0, {MAX_RECORD_BYTES}",
        "SELECT file FROM records WHERE rowid = ?",
        with_dictionary,
    ),
    2: PackFormat(
        {
            **CELLS_AND_RECIPES,
            "records": RECORD_COLUMNS.format(
                "block INTEGER NOT NULL, start INTEGER NOT NULL, size INTEGER NOT NULL"
            ),
            "blocks": "CREATE TABLE blocks (id INTEGER PRIMARY KEY, xz BLOB NOT NULL)",
        },
        "block, start, size",
        "SELECT xz FROM blocks WHERE id = ?",
        lambda _: decompressed,
    ),
}
VERSION = max(FORMATS)
