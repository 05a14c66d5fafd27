"""Objects of a local S3 server, read and written; and two writers of one place."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from contrada.errors import ContradaError, CorruptFile, InvalidValue
from contrada.forwarding.segments.index_directory import write_index
from contrada.forwarding.segments.segmented_table import SegmentedTable
from contrada.forwarding.stores import object_store
from contrada.forwarding.stores.addresses import address_of, join, name_inside, name_of, shown

if TYPE_CHECKING:
    from pathlib import Path


def test_objects_are_put_listed_read_and_removed(url: str, tmp_path: Path) -> None:
    content = os.urandom(9_000_000)  # of several parts
    (tmp_path / "folder" / "day=1").mkdir(parents=True)
    (tmp_path / "folder" / "day=1" / "a b").write_bytes(content)
    (tmp_path / "folder" / "empty").write_bytes(b"")
    assert object_store.entries(url) == []
    object_store.upload_folder(tmp_path / "folder", url)
    listed = object_store.entries(url)
    assert {name_inside(url, each.address): each.size for each in listed} == {"day=1/a b": len(content), "empty": 0}
    (large, _) = (each.address for each in listed)
    assert object_store.size_of(large) == len(content)
    assert object_store.read(large, len(content)) == content
    with pytest.raises(CorruptFile, match="more than 10 bytes"):
        object_store.read(large, 10)
    object_store.download(large, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == content
    with object_store.open_object(large) as file:
        file.seek(-5, os.SEEK_END)
        assert (file.read(), file.seek(7), file.read(3)) == (content[-5:], 7, content[7:10])
    packed = join(url, "x.jsonl.gz")  # written as it is, not packed again
    object_store.write(packed, b"bytes")
    assert object_store.read(packed, 10) == b"bytes"
    object_store.upload(tmp_path / "folder" / "day=1" / "a b", packed)
    assert object_store.size_of(packed) == len(content)
    object_store.write(large, b"other")
    assert object_store.read(large, 10) == b"other"
    object_store.delete([large, join(url, "none")])
    assert object_store.size_of(large) is None
    with pytest.raises(FileNotFoundError):
        object_store.read(large, 10)


def test_what_a_store_says_has_a_number_and_no_secret(url: str, tmp_path: Path) -> None:
    nowhere = "s3://key:secret@bucket/x?endpoint_override=127.0.0.1:9&scheme=http&region=us-east-1"
    with pytest.raises(OSError, match="s3://bucket/x") as failed:
        object_store.size_of(nowhere)
    assert failed.value.errno == errno.EIO
    assert "secret" not in str(failed.value)
    with pytest.raises(ContradaError):
        object_store.size_of(url.replace("scheme=http", "nonsense=1"))
    with pytest.raises(OSError, match="s3://missing"):
        object_store.write(url.replace("@bucket", "@missing"), b"x")


def test_one_writes_at_a_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with object_store.alone_in(url) as mark:
        assert [each.address for each in object_store.entries(url)] == [mark]
        with pytest.raises(InvalidValue, match="another job is writing"), object_store.alone_in(url):
            raise AssertionError("two at once")
        assert [each.address for each in object_store.entries(url)] == [mark]
    assert object_store.entries(url) == []
    killed = join(url, object_store.MARK + "killed")
    object_store.write(killed, b"")
    monkeypatch.setattr(object_store, "_DEAD", -1.0)
    with object_store.alone_in(url) as mark:
        assert [name_of(each.address) for each in object_store.entries(url)] == [name_of(mark)]


KNOWN = (
    ("gs://anonymous@bucket/index", "GcsFileSystem", "bucket/index"),
    ("gcs://anonymous@bucket/a%20b/index", "GcsFileSystem", "bucket/a b/index"),
    ("abfs://container@account.dfs.core.windows.net/index", "AzureFileSystem", "container/index"),
    ("abfss://container:a2V5@account.dfs.core.windows.net/index", "AzureFileSystem", "container/index"),
    ("abfs://account.blob.core.windows.net/container/index", "AzureFileSystem", "container/index"),
    ("s3a://key:secret@bucket/index?region=eu-south-1", "S3FileSystem", "bucket/index"),
)


@pytest.mark.parametrize(("given", "kind", "inside"), KNOWN, ids=[each[0][:12] for each in KNOWN])
def test_which_store_an_address_is_of(given: str, kind: str, inside: str) -> None:
    address = address_of(given, "INDEX")
    store, path = object_store._store_of(address)
    assert (type(store).__name__, path) == (kind, inside)
    assert object_store._store_of(join(address, "day=1", "x"))[1] == f"{inside}/day=1/x"
    assert not any(secret in shown(address) for secret in ("secret", "a2V5", "region"))
    assert shown(address).endswith(("bucket/index", "bucket/a%20b/index", ".net/index", "container/index"))


def test_addresses_of_no_store() -> None:
    assert shown("abfs://container:a2V5@account.dfs.core.windows.net/x") == (
        "abfs://container@account.dfs.core.windows.net/x"
    )
    for wrong, why in (
        ("ftp://host/index", "a URL begins with one of"),
        ("gs://bucket", "has a bucket and a path"),
        ("abfs:///index", "has a bucket and a path"),
        ("hdfs://name/x#y", "has a bucket and a path"),
        ("", "an empty path"),
    ):
        with pytest.raises(InvalidValue, match=why):
            address_of(wrong, "OUT")
    with pytest.raises(InvalidValue, match="abfs://bucket/x"):
        object_store.size_of("abfs://bucket/x")  # no account


@pytest.fixture(params=["gs", "abfs", "hdfs", "viewfs"])
def stand_in(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A URL whose store is a directory here: what is tried is what we make of addresses, not those who serve them."""
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    (tmp_path / "store").mkdir()
    monkeypatch.setenv("CONTRADA_CACHE", str(tmp_path / "cache"))
    asked: list[str] = []

    def connected(root: str) -> tuple[object, str]:
        asked.append(root)
        return SubTreeFileSystem(str(tmp_path / "store"), LocalFileSystem()), urlsplit(root).netloc.partition("@")[0]

    monkeypatch.setattr(object_store, "_connected", connected)
    where = {"gs": "bucket", "abfs": "box@account.dfs.core.windows.net", "hdfs": "name:8020", "viewfs": "name"}
    bucket = where[request.param].partition("@")[0] if request.param in ("gs", "abfs") else ""
    (tmp_path / "store" / bucket / "some" / "index").mkdir(parents=True)  # stores need no folders to be made
    return f"{request.param}://{where[request.param]}/some/index"


def test_an_index_by_every_kind_of_address(stand_in: str, tmp_path: Path) -> None:
    write_index(tmp_path / "index", [("s1", "I", "x > 1"), ("s2", "J", "at inside BOX(0 0, 5 5)")])
    object_store.upload_folder(tmp_path / "index", stand_in)
    assert {name_inside(stand_in, each.address) for each in object_store.entries(stand_in)} == {
        each.name for each in (tmp_path / "index").iterdir()
    }
    table = SegmentedTable.open(stand_in)
    assert table.match({"x": 2}) == {"I"}
    with (
        object_store.alone_in(stand_in),
        pytest.raises(InvalidValue, match="another job is writing"),
        object_store.alone_in(stand_in),
    ):
        pass
