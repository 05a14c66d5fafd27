"""The live map in a real Chromium: built by `make web`, used as people use it, and looked at (screenshots).

Node, npm and Chromium are found, or installed where that is allowed; where they cannot be had the tests are skipped,
and say so. With CONTRADA_SCREENSHOTS=FOLDER the pictures are kept there (docs/live-map.png is one of them).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from contrada import Broker, Client
from contrada.client.gateway.http.page import FOLDER
from contrada.client.gateway.tokens import make_token
from tests.client.gateway.conftest import WEB, command, loudly_skip

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("aiohttp", reason="the gateway's libraries are not installed: contrada[gateway]")
MOST_BYTES = 1_500_000
pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def page(node: str) -> Path:
    """The page, built if it is older than what it is made of."""
    made_of = [*WEB.glob("src/*"), WEB / "build.mjs", WEB / "package-lock.json"]
    if not (FOLDER / "painter.js").is_file() or (FOLDER / "map.js").stat().st_mtime < max(
        each.stat().st_mtime for each in made_of
    ):
        built = command(node, "build.mjs", cwd=WEB)
        assert built.returncode == 0, built.stderr
    return FOLDER


@pytest.fixture(scope="module")
def chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    if shutil.which("apt-get") and os.geteuid() == 0:
        command("apt-get", "install", "-y", "--no-install-recommends", "chromium")
        if found := shutil.which("chromium"):
            return found
    loudly_skip("there is no Chromium here, and apt-get cannot install one")
    raise AssertionError


@contextmanager
def process(*words: str, ready: str) -> Iterator[str]:
    """A command of ours, and what it said where `ready` has its group."""
    running = subprocess.Popen([sys.executable, "-m", "contrada", *words], stderr=subprocess.PIPE, text=True)
    try:
        assert running.stderr is not None
        said = []
        for line in running.stderr:
            said.append(line)
            if found := re.search(ready, line):
                yield found[1]
                break
        else:
            raise AssertionError("".join(said))
    finally:
        running.terminate()
        running.communicate(timeout=30)


def use(node: str, chromium: str, url: str, folder: Path, *scenarios: str, **environment: str) -> str:
    kept = Path(os.environ.get("CONTRADA_SCREENSHOTS", folder)).resolve()
    words = (node, "browser/scenario.mjs", url, chromium, str(kept), *scenarios)
    done = command(*words, cwd=WEB, timeout=850, env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_texts_and_places(node):
    done = command(node, "--test", "test/", cwd=WEB)
    assert done.returncode == 0, done.stdout


def test_the_lock_pins_everything_and_names_no_registry():
    lock = json.loads((WEB / "package-lock.json").read_text())
    packages = {name: each for name, each in lock["packages"].items() if name}
    assert all(each["integrity"].startswith("sha512-") for each in packages.values())
    assert not any("resolved" in each for each in packages.values())
    about = json.loads((WEB / "package.json").read_text())
    wanted = {**about["dependencies"], **about["devDependencies"]}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values())
    assert all(packages[f"node_modules/{name}"]["version"] == version for name, version in wanted.items())


def test_the_page_is_small_and_carries_licences(page):
    size = sum(each.stat().st_size for each in page.iterdir() if each.name != "LICENSES.txt")
    assert size <= MOST_BYTES
    licences = (page / "LICENSES.txt").read_text()
    assert "@deck.gl/core" in licences
    assert "Permission is hereby granted" in licences
    assert not (page / "map.js").read_text().count("eval(")


def test_it_is_watched_drawn_on_and_looked_back_at(node, page, chromium, tmp_path):
    with process("live", "--http", "127.0.0.1:0", ready=r"live map is (\S+)") as url:
        said = use(node, chromium, url, tmp_path, "watch", "draw", "past", "keyboard")
    assert said.count(": ok") == 4


def test_roles_decide_what_is_seen(node, page, chromium, tmp_path):
    token, _ = make_token(tmp_path, "reader", ["subscribe"])
    with (
        process("live", "--http", "127.0.0.1:0", ready=r"broker is (\S+);") as broker,
        process(
            "gateway", "--url", broker, "--http", "127.0.0.1:0", "--tokens", str(tmp_path), ready=r"listens on (\S+);"
        ) as url,
    ):
        use(node, chromium, f"{url}/", tmp_path, "roles", CONTRADA_TOKEN=token)


def test_the_tree_says_what_covering_saved(node, page, chromium, tmp_path):
    with Broker() as other, Broker(peers=[other.url]) as broker, Client(broker.url) as client:
        for least in (90, 100, 110):
            client.subscribe(f"wind > {least}")
        deadline = time.monotonic() + 60
        while not any(link["saved"] == 2 for link in client.status()["overlay"]["links"]):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        with process("gateway", "--url", broker.url, "--http", "127.0.0.1:0", ready=r"listens on (\S+);") as url:
            use(node, chromium, f"{url}/", tmp_path, "overlay")
