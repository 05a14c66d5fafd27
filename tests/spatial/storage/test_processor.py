import os
import platform
import subprocess
import sys

import pytest
from llvmlite import binding

from contrada.spatial.storage.processor import BASELINES, choose_processor


@pytest.fixture
def a_numba_yet_to_be_imported(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for module in ("numba.core.config", "numba.core.registry"):
        monkeypatch.delitem(sys.modules, module, raising=False)
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


COMPILED_FOR = """
from numba.core import config, registry
from contrada.spatial.storage import jit
print(registry.cpu_target.target_context.codegen().magic_tuple()[1], config.CPU_NAME)
"""


@pytest.mark.parametrize("first", ["", "import numba", "from contrada.spatial.storage import kernel_cache"])
def test_it_does_not_matter_who_imports_numba_first(first: str) -> None:
    baseline = BASELINES.get(platform.machine().lower())
    has = binding.get_host_cpu_features()
    common = baseline is not None and all(has.get(feature) for feature in baseline.features)
    name = baseline.name if baseline is not None and common else binding.get_host_cpu_name()
    assert kernels_are_compiled_for(first)[0] == name


def test_a_numba_that_has_compiled_keeps_its_processor() -> None:
    first = "import numba; numba.njit(lambda x: x + 1)(1)"
    assert kernels_are_compiled_for(first) == [binding.get_host_cpu_name(), "None"]


def kernels_are_compiled_for(first: str) -> list[str]:
    """The processor that a fresh process compiles for, and numba's setting of it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_CPU_")}
    ran = subprocess.run(
        [sys.executable, "-c", first + COMPILED_FOR],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return ran.stdout.split()
