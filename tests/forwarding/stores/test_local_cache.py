"""The cache of fetched files: each comes once, all together have so many bytes, and what is damaged is not kept."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from contrada.errors import CorruptFile, InvalidValue
from contrada.forwarding.stores import object_store
from contrada.forwarding.stores.addresses import join
from contrada.forwarding.stores.local_cache import LocalCache


def put(url: str, count: int, size: int = 1000) -> list[str]:
    addresses = [join(url, f"file-{number}") for number in range(count)]
    for number, address in enumerate(addresses):
        object_store.write(address, bytes([number]) * size)
    return addresses


def held(cache: LocalCache) -> set[str]:
    return {file.name for file in cache.place.glob("*/[!.]*")}


def test_what_was_used_longest_ago_makes_room(url: str, tmp_path: Path) -> None:
    cache = LocalCache(tmp_path / "cache", 3000)
    addresses = put(url, 5)
    for number, address in enumerate(addresses[:3]):
        with cache.holding([address]) as (file,):
            assert file.read_bytes() == bytes([number]) * 1000
            os.utime(file, (number, number))
    with cache.holding(addresses[:1]):
        pass  # now it was used last
    with cache.holding(addresses[3:4]) as files:
        mapped = files[0].open("rb")
    os.utime(files[0], (5, 5))
    with LocalCache(cache.place, 2000).holding(addresses[4:]):
        pass
    with mapped:
        assert mapped.read() == bytes([3]) * 1000  # though it is gone
    assert held(cache) == {"file-0", "file-4"}
    with (
        pytest.raises(InvalidValue, match="CONTRADA_CACHE_BYTES"),
        LocalCache(tmp_path / "small", 999).holding(addresses[:1]),
    ):
        raise AssertionError("it holds what it may not")
    with pytest.raises(InvalidValue, match="too few"), LocalCache(tmp_path / "narrow", 1999).holding(addresses[:2]):
        raise AssertionError("it holds what it may not")


def test_a_file_is_fetched_once(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = LocalCache(tmp_path / "cache", 10_000)
    (address,) = put(url, 1)
    fetched = []
    download = object_store.download
    monkeypatch.setattr(object_store, "download", lambda *given: (fetched.append(given), download(*given)))

    def use(_: int) -> bytes:
        with cache.holding([address]) as (file,):
            return file.read_bytes()

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(use, range(40))) == {bytes(1000)}
    assert len(fetched) == 1


def test_what_is_damaged_is_not_kept(url: str, tmp_path: Path) -> None:
    cache = LocalCache(tmp_path / "cache", 10_000)
    (address,) = put(url, 1)

    def refuse(file: Path) -> None:
        raise CorruptFile(f"{file}: damaged")

    with pytest.raises(CorruptFile, match="damaged"), cache.holding([address], refuse):
        raise AssertionError("it was looked at")
    assert held(cache) == set()
    with pytest.raises(FileNotFoundError), cache.holding([join(url, "none")]):
        raise AssertionError("it is not there")


def test_the_environment_says_where_and_how_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTRADA_CACHE", "/x")
    monkeypatch.setenv("CONTRADA_CACHE_BYTES", "2g")
    assert LocalCache.of_environment() == LocalCache(Path("/x"), 2 << 30)
    monkeypatch.setenv("CONTRADA_CACHE_BYTES", "much")
    with pytest.raises(InvalidValue, match="CONTRADA_CACHE_BYTES=much"):
        LocalCache.of_environment()
    monkeypatch.delenv("CONTRADA_CACHE")
    monkeypatch.delenv("CONTRADA_CACHE_BYTES")
    assert LocalCache.of_environment().most == 10 << 30
