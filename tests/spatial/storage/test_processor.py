import os
import platform
import sys

import pytest
from llvmlite import binding

from contrada.spatial.storage.processor import BASELINES, choose_processor


@pytest.fixture
def a_numba_yet_to_be_imported(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    for variable in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"):
        monkeypatch.setenv(variable, "")  # so that it is as it was afterwards, whatever the test does
        monkeypatch.delenv(variable)
    return monkeypatch


def chosen(monkeypatch: pytest.MonkeyPatch, machine: str, *lacks: str) -> tuple[str | None, str | None]:
    features = {name for each in BASELINES.values() for name in each.features} - set(lacks)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(binding, "get_host_cpu_features", lambda: dict.fromkeys(features, True))
    choose_processor()
    return os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")


@pytest.mark.parametrize(("machine", "name"), [("x86_64", "x86-64-v3"), ("AMD64", "x86-64-v3"), ("aarch64", "generic")])
def test_a_common_kind_is_chosen(a_numba_yet_to_be_imported: pytest.MonkeyPatch, machine: str, name: str) -> None:
    features = BASELINES[machine.lower()].features
    assert chosen(a_numba_yet_to_be_imported, machine) == (name, ",".join(f"+{each}" for each in features))


def test_a_machine_that_lacks_a_feature_compiles_for_itself(a_numba_yet_to_be_imported: pytest.MonkeyPatch) -> None:
    assert chosen(a_numba_yet_to_be_imported, "x86_64", "avx2") == (None, None)


def test_an_unknown_machine_compiles_for_itself(a_numba_yet_to_be_imported: pytest.MonkeyPatch) -> None:
    assert chosen(a_numba_yet_to_be_imported, "riscv64") == (None, None)


def test_what_the_user_chose_stays(a_numba_yet_to_be_imported: pytest.MonkeyPatch) -> None:
    a_numba_yet_to_be_imported.setenv("NUMBA_CPU_NAME", "znver3")
    assert chosen(a_numba_yet_to_be_imported, "x86_64") == ("znver3", None)
