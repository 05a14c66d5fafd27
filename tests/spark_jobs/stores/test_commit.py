"""An output appears whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contrada.errors import InvalidValue
from contrada.spark_jobs.stores.commit import output

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, text: str) -> None:
    with output(path, "mark") as staging:
        (staging / "mark").write_text(text)
        (staging / text).touch()


def fail(path: Path) -> None:
    with output(path, "mark") as staging:
        (staging / "mark").touch()
        raise RuntimeError


def test_an_output_is_replaced_as_a_whole(tmp_path: Path) -> None:
    write(tmp_path / "out", "one")
    write(tmp_path / "out", "two")
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == ["mark", "two"]
    assert sorted(each.name for each in tmp_path.iterdir()) == [".out.lock", "out"]


def test_a_job_that_fails_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path / "out", "one")
    with pytest.raises(RuntimeError):
        fail(tmp_path / "out")
    assert (tmp_path / "out" / "one").exists()
    assert not (tmp_path / ".out.writing").exists()


def test_what_a_killed_job_left_is_swept_away_or_restored(tmp_path: Path) -> None:
    write(tmp_path / "out", "one")
    (tmp_path / ".out.writing").mkdir()
    (tmp_path / ".out.writing" / "half").touch()
    (tmp_path / "out").rename(tmp_path / ".out.replaced")  # as if killed between the two renames
    with pytest.raises(RuntimeError):
        fail(tmp_path / "out")
    assert (tmp_path / "out" / "one").exists()
    write(tmp_path / "out", "two")
    assert not list(tmp_path.rglob("half"))


def test_two_jobs_do_not_write_one_output(tmp_path: Path) -> None:
    with output(tmp_path / "out", "mark") as staging:
        with pytest.raises(InvalidValue, match="another job is writing"):
            write(tmp_path / "out", "two")
        (staging / "mark").touch()


def test_what_is_no_output_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write(tmp_path / "out", "empty directories are fine")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    (tmp_path / "file").touch()
    for name in ("mine", "file"):
        with pytest.raises(InvalidValue, match="no earlier output"):
            write(tmp_path / name, "x")
    assert (tmp_path / "mine" / "thesis.tex").exists()
