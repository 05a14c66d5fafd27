"""Objects of a local S3 server, read and written; and two writers of one place."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from contrada.errors import ContradaError, CorruptFile, InvalidValue
from contrada.forwarding.stores import object_store
from contrada.forwarding.stores.addresses import join, name_inside, name_of

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
