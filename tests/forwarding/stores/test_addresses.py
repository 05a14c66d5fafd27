"""Addresses: paths and URLs taken apart and put together."""

from __future__ import annotations

from pathlib import Path

import pytest

from contrada.errors import InvalidValue
from contrada.forwarding.stores.addresses import (
    address_of,
    folder_of,
    in_a_store,
    is_url,
    join,
    name_inside,
    name_of,
    shown,
)

SECRET = "s3://key:secret@bucket/a/index?endpoint_override=h:1&session=x"


def test_urls_and_paths_are_told_apart():
    assert [is_url(each) for each in ("s3://b/x", "http://h/x", "/x", "x", "file:///x", "c:x")] == [
        True,
        True,
        *4 * [False],
    ]
    assert [in_a_store(each) for each in ("s3a://b/x", "gs://b/x", "http://h/x", "/s3:/x")] == [
        True,
        True,
        False,
        False,
    ]


def test_an_address_means_the_same_everywhere():
    assert address_of("x/../y", "OUT") == str(Path.cwd() / "y")
    assert address_of("file:///a%20b", "OUT") == "/a b"
    assert address_of("s3://b/x/", "OUT") == "s3://b/x"
    for wrong, why in (
        ("", "an empty path"),
        ("http://h/x", "begins with one of s3"),
        ("s3://b", "a bucket and a path"),
        ("s3:///x", "a bucket and a path"),
        ("s3://b/x#y", "a bucket and a path"),
        ("file://host/x", "another machine"),
    ):
        with pytest.raises(InvalidValue, match=f"OUT.*{why}"):
            address_of(wrong, "OUT")


def test_names_are_put_before_the_options():
    assert join(SECRET, "b", "c") == "s3://key:secret@bucket/a/index/b/c?endpoint_override=h:1&session=x"
    assert join("/a", "b", "c") == "/a/b/c"
    for folder in (SECRET, "/a/index"):
        inside = join(folder, "day=1", "part.parquet")
        assert (name_of(inside), name_inside(folder, inside)) == ("part.parquet", "day=1/part.parquet")
        assert folder_of(folder_of(inside)) == folder


def test_what_is_told_has_no_secrets():
    assert shown(SECRET) == "s3://bucket/a/index"
    assert shown("/a?b") == "/a?b"
    with pytest.raises(InvalidValue) as refused:
        address_of("s3://key:secret@bucket", "OUT")
    assert "secret" not in str(refused.value)
