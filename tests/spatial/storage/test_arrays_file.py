"""The container every index is saved in: round trips, and every way a file can be wrong."""

from __future__ import annotations

import json
import os
import socket
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from contrada.errors import CorruptFile
from contrada.spatial.storage.arrays_file import load_arrays, save_arrays

ARRAYS = {"a": np.arange(7, dtype=np.int32), "b": np.zeros((0, 4)), "c": np.array([[1.5, -2.0]])}


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "x.idx"
    save_arrays(path, kind="test", version=3, arrays=ARRAYS, meta={"n": 7})
    return path


def test_older_layouts_are_taken_where_they_can_be_read(saved):
    assert load_arrays(saved, kind="test", version=4, oldest=3)[1] == {"n": 7}
    with pytest.raises(CorruptFile, match="layout 3, this version reads 4 to 5"):
        load_arrays(saved, kind="test", version=5, oldest=4)


def test_round_trip(saved):
    arrays, meta = load_arrays(saved, kind="test", version=3)
    assert meta == {"n": 7}
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)


def test_loaded_arrays_can_change_without_changing_the_file(saved):
    arrays, _ = load_arrays(saved, kind="test", version=3)
    arrays["a"][0] = 99
    assert load_arrays(saved, kind="test", version=3)[0]["a"][0] == 0


@given(hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(min_dims=0, min_side=0)), st.text())
def test_any_plain_array_round_trips(tmp_path_factory, array, name):
    path = tmp_path_factory.mktemp("arrays") / "x"
    save_arrays(path, kind="k", version=1, arrays={name: array})
    back = load_arrays(path, kind="k", version=1)[0][name]
    assert back.shape == array.shape
    assert back.tobytes() == array.astype(array.dtype.newbyteorder("<")).tobytes()


def test_truncation_at_every_byte_is_refused(saved):
    whole = saved.read_bytes()
    for length in range(len(whole)):
        saved.write_bytes(whole[:length])
        with pytest.raises(CorruptFile):
            load_arrays(saved, kind="test", version=3)


def test_a_flipped_bit_anywhere_is_refused_or_harmless(saved):
    whole = bytearray(saved.read_bytes())
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1
        saved.write_bytes(damaged)
        try:
            arrays, meta = load_arrays(saved, kind="test", version=3)
        except CorruptFile:
            continue
        assert meta == {"n": 7}, f"byte {at}"
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(arrays[name], array)


@pytest.mark.parametrize(("kind", "version", "words"), [("other", 3, "not a other"), ("test", 4, "layout 3")])
def test_another_kind_or_version_is_named(saved, kind, version, words):
    with pytest.raises(CorruptFile, match=words):
        load_arrays(saved, kind=kind, version=version)


def test_missing_and_foreign_files(tmp_path):
    with pytest.raises(CorruptFile, match="cannot be read"):
        load_arrays(tmp_path / "none", kind="test", version=1)
    (tmp_path / "text").write_text("hello, this is not an index at all")
    with pytest.raises(CorruptFile, match="not a Contrada file"):
        load_arrays(tmp_path / "text", kind="test", version=1)


def test_object_arrays_are_refused(tmp_path):
    with pytest.raises(TypeError, match="Python objects"):
        save_arrays(tmp_path / "x", kind="k", version=1, arrays={"o": np.array([{}], dtype=object)})
    assert list(tmp_path.iterdir()) == []


def _socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, _socket])
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path, make):
    make(tmp_path / "x")
    with pytest.raises(CorruptFile, match="where a file was expected"):
        load_arrays(tmp_path / "x", kind="test", version=3)


@pytest.mark.parametrize(
    "said",
    [
        ["<i4", [7], 0],
        ["<i4", [7], 1 << 40, 0],
        ["<i4", [7], -64, 0],
        ["<i4", [7], 4, 0],
        ["<i4", [1 << 62, 4], 0, 0],
        ["<i4", [-7], 0, 0],
        ["<i4", ["7"], 0, 0],
        ["<i4", 7, 0, 0],
        ["|O", [1], 0, 0],
        [["x", "<i4"], [1], 0, 0],
        "<i4",
        None,
    ],
)
def test_a_header_that_lies_about_an_array_is_refused(saved, said):
    forge_header(saved, lambda header: header["arrays"].update(a=said))
    with pytest.raises(CorruptFile, match="array 'a'"):
        load_arrays(saved, kind="test", version=3, verify=False)


@pytest.mark.parametrize("name", ["kind", "version", "size", "meta", "arrays"])
def test_a_header_without_a_part_is_refused(saved, name):
    forge_header(saved, lambda header: header.pop(name))
    with pytest.raises(CorruptFile, match="without what every file says"):
        load_arrays(saved, kind="test", version=3)


def forge_header(path, change):
    """Change a file's header and give it the checksum that it should have; it does not grow."""
    whole = path.read_bytes()
    length = int.from_bytes(whole[12:16], "little")
    header = json.loads(whole[24 : 24 + length])
    change(header)
    made = json.dumps(header).encode()
    made += b" " * (length - len(made))
    assert len(made) <= length + 64
    room = (24 + length + 63) // 64 * 64 - 24
    made = made.ljust(length)[:room]
    path.write_bytes(
        whole[:12]
        + len(made).to_bytes(4, "little")
        + zlib.crc32(made).to_bytes(4, "little")
        + bytes(4)
        + made
        + bytes(room - len(made))
        + whole[24 + room :]
    )
