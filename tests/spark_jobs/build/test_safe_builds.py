"""A build never makes an index worse: what is out of reach fails it, what accepts too little leaves what is there."""

from __future__ import annotations

import gzip
import json
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contrada.errors import CorruptFile, InvalidValue
from contrada.forwarding.segments.index_directory import commit_index, write_index
from contrada.forwarding.segments.manifest import read_manifest
from contrada.spark_jobs.build.build_index import build_index, run_build
from contrada.spark_jobs.build.plan import plan_build
from contrada.spark_jobs.build.rows.sources import find_subscriptions
from contrada.spark_jobs.common.engine import SparkEngine
from contrada.spark_jobs.common.errors import JobFailed, NotCommitted, reason_of
from contrada.spark_jobs.common.text_lines import read_lines
from contrada.spark_jobs.stores import places

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOOD = [{"id": f"s{n}", "interface": "I", "filter": f"price > {n}"} for n in range(20)]


def write_lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("\n".join(each if isinstance(each, str) else json.dumps(each) for each in rows), encoding="utf-8")
    return path


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def state(index: Path) -> dict[str, bytes]:
    """All that belongs to an index."""
    return {str(f.relative_to(index)): f.read_bytes() for f in index.rglob("*") if f.is_file() and f.name != ".lock"}


def quarantine(index: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(index / read_manifest(index).folders["quarantine"]).to_pylist()
    return rows


def test_a_file_that_an_executor_cannot_reach_fails_the_job(spark: SparkSession, tmp_path: Path) -> None:
    write_index(tmp_path / "index", [("old", "I", "price > 1")])
    before = state(tmp_path / "index")
    for name in ("a.parquet", "b.parquet"):
        write_parquet(tmp_path / name, GOOD)
        plan = plan_build(str(tmp_path / name), str(tmp_path / "index"), max_quarantined=1, allow_empty=True)
        (tmp_path / name).unlink()  # seen by the driver, and by no executor
        with pytest.raises(JobFailed, match=rf"{name}: cannot be read on {socket.gethostname()}: .*such file"):
            run_build(plan, SparkEngine(spark))
        assert state(tmp_path / "index") == before


def test_what_fails_in_a_task_tells_where(spark: SparkSession) -> None:
    def fail(number: int, task: str) -> Any:
        raise MemoryError("no more room")

    with pytest.raises(JobFailed, match=rf"MemoryError: no more room \(on {socket.gethostname()}\)"):
        SparkEngine(spark).run(["one"], fail, 1, iter)


def test_paths_are_those_of_the_driver(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    for source in (
        write_parquet(tmp_path / "home" / "s.parquet", GOOD),
        write_lines(tmp_path / "home" / "s.jsonl", GOOD),
    ):
        plan = plan_build(source.name, "index")
        assert all(Path(each).is_absolute() for each in (*(file.address for file in plan.found.files), plan.out))
        built = run_build(plan, SparkEngine(spark))  # workers of this session live elsewhere
        assert built.subscriptions == 20
        assert built.index == str(tmp_path / "home" / "index")


def test_nothing_accepted_or_too_much_refused_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    index = tmp_path / "index"
    write_index(index, [("old", "I", "price > 1")])
    before = state(index)
    all_bad = write_lines(tmp_path / "bad.jsonl", ["{]"] * 3)
    with pytest.raises(NotCommitted, match="no subscription was accepted, of 3 rows") as told:
        build_index(all_bad, index, session=spark)
    assert pq.read_table(told.value.quarantine).num_rows == 3
    assert told.value.quarantine == str(index / "refused")
    assert {name: text for name, text in state(index).items() if "refused" not in name} == before
    some = write_lines(tmp_path / "some.jsonl", [*GOOD, "{]", "{]", "{]"])
    with pytest.raises(NotCommitted, match="3 of 23 rows went to the quarantine, above the 10%"):
        build_index(some, index, session=spark, quarantine=str(tmp_path / "rejected"))
    assert pq.read_table(tmp_path / "rejected").num_rows == 3
    assert {name: text for name, text in state(index).items() if "refused" not in name} == before
    assert build_index(some, index, session=spark, max_quarantined=0.14).subscriptions == 20
    assert not (index / "refused").exists()
    assert build_index(all_bad, index, session=spark, allow_empty=True).subscriptions == 0
    assert len(quarantine(index)) == 3


def test_a_packed_file_that_is_cut_is_set_aside_by_name(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_lines(tmp_path / "in" / "a.jsonl", GOOD)
    packed = gzip.compress("\n".join(map(json.dumps, GOOD)).replace('"s', '"t').encode())
    (tmp_path / "in" / "b.jsonl.gz").write_bytes(packed)
    (tmp_path / "in" / "c.jsonl.gz").write_bytes(packed.replace(b"x", b"x")[:-9])
    with pytest.raises(NotCommitted, match="% of the input went to the quarantine"):
        build_index(tmp_path / "in", tmp_path / "index", session=spark)
    built = build_index(tmp_path / "in", tmp_path / "index", session=spark, max_quarantined=0.5)
    assert (built.subscriptions, built.quarantined, built.duplicates) == (40, 1, 0)
    (bad,) = quarantine(tmp_path / "index")
    assert bad["source"] == str(tmp_path / "in" / "c.jsonl.gz")
    assert "cut or damaged, not a whole .gz file" in bad["reason"]


def test_packed_lines_are_those_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrada.spark_jobs.common.text_lines._BLOCK", 7)
    for text in (b"", b"\n", b"one", b"one\ntwo\r\nthree\rfour", b"a long line without an end\n\nand another\r\n"):
        (tmp_path / "f.gz").write_bytes(gzip.compress(text))
        found = [line for lines in read_lines(str(tmp_path / "f.gz")) for line in lines.to_pylist()]
        assert found == text.splitlines()
    (tmp_path / "f.gz").write_bytes(b"")
    assert list(read_lines(str(tmp_path / "f.gz"))) == []
    (tmp_path / "f.gz").write_bytes(b"nonsense")
    with pytest.raises(CorruptFile, match="cut or damaged"):
        list(read_lines(str(tmp_path / "f.gz")))


def test_raw_is_the_row_as_given(spark: SparkSession, tmp_path: Path) -> None:
    ring = ", ".join(f"{n} {n * n}" for n in range(1500))
    lines = [
        '{"interface": "I",  "id": "one", "filter": "price >"}',
        '{"id": "two",   "interface": "I", "filter": "price > 1e0"}',
        '{"filter": "price > 2.50", "id": "two", "interface": "I", "note": "é"}',
        f'{{"id": "three", "interface": "I", "filter": "area inside POLYGON(({ring})"}}',
    ]
    build_index(
        str(write_lines(tmp_path / "s.jsonl", [*GOOD, *lines])), str(tmp_path / "a"), session=spark, max_quarantined=1
    )
    assert sorted(row["raw"] for row in quarantine(tmp_path / "a")) == sorted(lines)
    rows = [*({**row, "id": n} for n, row in enumerate(GOOD)), {"id": 3, "interface": "J", "filter": "area  = 1"}]
    rows.append({"id": 99, "interface": None, "filter": "price >  1"})
    build_index(write_parquet(tmp_path / "s.parquet", rows), tmp_path / "b", session=spark, max_quarantined=1)
    found = [json.loads(row["raw"]) for row in quarantine(tmp_path / "b")]
    assert sorted(found, key=lambda row: str(row["filter"])) == sorted(
        (rows[3], rows[-2], rows[-1]), key=lambda row: str(row["filter"])
    )


def test_statistics_and_quarantine_are_those_of_the_manifest(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever step of a commit fails, what the manifest names is whole and belongs together."""
    index = tmp_path / "index"
    write_lines(tmp_path / "one.jsonl", [*GOOD, "{one]"])
    write_lines(tmp_path / "two.jsonl", [*GOOD[:12], "{two]"])
    build_index(tmp_path / "one.jsonl", index, session=spark, quarantine=str(tmp_path / "rejected"))
    before = state(index)
    copies = state(tmp_path / "rejected")

    def fail(*arguments: Any, **options: Any) -> None:
        commit_index(tmp_path / "nowhere", [], folders=options["folders"])

    monkeypatch.setattr(places, "commit_index", fail)
    with pytest.raises(OSError, match="nowhere"):
        build_index(tmp_path / "two.jsonl", index, session=spark, quarantine=str(tmp_path / "rejected"))
    assert (state(index), state(tmp_path / "rejected")) == (before, copies)

    def die(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(places, "commit_index", commit_index)
    monkeypatch.setattr("contrada.forwarding.segments.index_directory._replace_manifest", die)
    with pytest.raises(KeyboardInterrupt):
        build_index(tmp_path / "two.jsonl", index, session=spark, quarantine=str(tmp_path / "rejected"))
    after = state(index)
    assert {name: after[name] for name in before} == before
    assert state(tmp_path / "rejected") == copies
    assert [row["raw"] for row in quarantine(index)] == ["{one]"]
    monkeypatch.undo()
    for _ in range(2):  # the index before the last may still be read; then it goes
        build_index(tmp_path / "two.jsonl", index, session=spark, quarantine=str(tmp_path / "rejected"))
    assert [row["raw"] for row in quarantine(index)] == ["{two]"]
    assert pq.read_table(tmp_path / "rejected").to_pylist() == quarantine(index)
    assert len(list(index.glob("statistics-*"))) == len(list(index.glob("quarantine-*"))) == 1


def test_a_quarantine_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    index = tmp_path / "index"
    write_index(index, [("old", "I", "price > 1")])
    before = state(index)
    (tmp_path / ".rejected.writing").touch()  # where a directory must be made
    source = write_lines(tmp_path / "s.jsonl", [*GOOD, "{]"])
    with pytest.raises(InvalidValue, match="cannot write"):
        build_index(source, index, quarantine=tmp_path / "rejected")
    after = state(index)
    assert {name: after[name] for name in before} == before
    assert not (tmp_path / "rejected").exists()


def test_a_file_that_cannot_be_read_is_a_row_whatever_it_is(tmp_path: Path) -> None:
    for name, write in (("parquet", write_parquet), ("jsonl", write_lines)):
        (tmp_path / name).mkdir()
        write(tmp_path / name / f"a.{name}", GOOD)
    (tmp_path / "parquet" / "b.parquet").write_bytes(b"PAR1")
    (tmp_path / "jsonl" / "b.jsonl.gz").write_bytes(b"nonsense")
    for name in ("parquet", "jsonl"):
        built = build_index(tmp_path / name, tmp_path / "index", max_quarantined=1)
        assert (built.rows, built.subscriptions, built.quarantined, built.duplicates) == (21, 20, 1, 0)


def test_patterns_in_every_part_of_a_path(tmp_path: Path) -> None:
    for name in ("day=1/eu/a.jsonl", "day=2/eu/b.jsonl", "day=2/us/c.jsonl", "day=2/us/_x.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    def found(pattern: str) -> str:
        return "".join(Path(file.address).stem for file in find_subscriptions(str(tmp_path / pattern)).files)

    assert found("day=*/eu/*.jsonl") == "ab"
    assert found("**/[bc].jsonl") == "bc"
    assert found("day=2/{eu,us}/?.jsonl") == "bc"
    assert found("day=*") == "abc"
    assert found(f"../{tmp_path.name}") == "abc"


def test_spark_says_what_happened_to_what_and_where() -> None:
    account = """Job aborted due to stage failure: Task 3 in stage 5.0 failed 4 times, most recent failure: Lost task \
3.3 in stage 5.0 (TID 9) (10.0.0.7 executor 2): org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] \
Encountered error while reading file file:///mnt/s.jsonl.  SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors.scala:856)
Caused by: java.io.IOException: Input/output error
\tat java.base/java.io.FileInputStream.readBytes(Native Method)"""
    told = reason_of(account)
    for part in (
        "failed 4 times",
        "10.0.0.7 executor 2",
        "file:///mnt/s.jsonl",
        "java.io.IOException: Input/output error",
    ):
        assert part in told
    python = account.replace(
        "[FAILED_READ_FILE.NO_HINT]",
        "Traceback (most recent call last):\n  File x, line 1\ncontrada.errors.CorruptFile: /mnt/i: damaged\n\n",
    )
    assert "/mnt/i: damaged" in reason_of(python)
    assert reason_of("") == "Spark does not say why"
    assert (
        reason_of("[PATH_NOT_FOUND] Path does not exist: hdfs://x/y")
        == "[PATH_NOT_FOUND] Path does not exist: hdfs://x/y"
    )
