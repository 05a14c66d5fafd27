"""`contrada gateway` and `contrada token` as processes, and the curl examples of README and docs/gateway.md."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import contrada
from contrada.client.cli.access import token as token_command
from tests.client.reference import make_broker

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("aiohttp", reason="the gateway's libraries are not installed: contrada[gateway]")
ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-m", "contrada"]


@contextmanager
def gateway_process(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start `contrada gateway`; the process and its address."""
    process = subprocess.Popen([*COMMAND, "gateway", *options], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        found = None
        for line in process.stderr:
            if (found := re.search(r"listens on (\S+);", line)) is not None:
                break
        assert found is not None, "the gateway did not start"
        yield process, found[1]
    finally:
        process.terminate()
        process.wait(30)
        process.stderr.close()


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine: README's examples not run")
@pytest.mark.parametrize("page", ["README.md", "docs/gateway.md"])
def test_the_curl_examples_run(page: str) -> None:
    lines = [line for line in (ROOT / page).read_text().splitlines() if line.startswith("curl ")]
    subscribe, publish = [line for line in lines if "durable" not in line]
    with make_broker() as broker, gateway_process("--url", broker.url, "--http", "127.0.0.1:0") as (process, url):
        here = url.removeprefix("http://")
        words = shlex.split(subscribe.removesuffix(" &").replace("127.0.0.1:7480", here))
        stream = subprocess.Popen([*words, "--silent"], stdout=subprocess.PIPE, text=True)
        assert stream.stdout is not None
        assert stream.stdout.readline() == "event: subscribed\n"
        answer = subprocess.run(
            [*shlex.split(publish.replace("127.0.0.1:7480", here)), "--silent"],
            capture_output=True,
            text=True,
            timeout=30,
        )
        (id,) = json.loads(answer.stdout)["ids"]
        got = next(json.loads(line[6:]) for line in stream.stdout if line.startswith('data: {"id"'))
        assert (got["id"], got["notification"]) == (id, {"wind": 120, "engine.rpm": 900})
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert "event: bye" in stream.stdout.read()
        stream.stdout.close()
        stream.wait(30)


@pytest.mark.parametrize("example", token_command.EXAMPLES)
def test_examples_of_token(example: str, tmp_path: Path) -> None:
    from contrada.client.gateway.tokens import TokenDirectory

    words = [*COMMAND, *shlex.split(example)[1:]]
    made = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert TokenDirectory(tmp_path / "keys").visitor(made.stdout.strip()).roles
    again = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (again.returncode, "exists already" in again.stderr) == (1, True)


def test_without_the_libraries_the_command_names_the_extra(tmp_path: Path) -> None:
    (tmp_path / "aiohttp.py").write_text("raise ImportError('none here', name='aiohttp')\n")
    result = subprocess.run(
        [*COMMAND, "gateway"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert (result.returncode, "contrada[gateway]" in result.stderr) == (1, True)


def test_settings_come_from_the_file(tmp_path: Path) -> None:
    with make_broker() as broker:
        path = tmp_path / "contrada.toml"
        path.write_text(f'url = "{broker.url}"\n[gateway]\nhttp = "127.0.0.1:0"\n')
        with gateway_process("--config", str(path)) as (_, url):
            assert url.startswith("http://127.0.0.1:")


def test_tls_by_certificate_files(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl on this machine to make a certificate: TLS not tried")
    files = [str(tmp_path / name) for name in ("key.pem", "cert.pem")]
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    subprocess.run([*make.split(), "-keyout", files[0], "-out", files[1]], check=True, capture_output=True, timeout=60)
    with (
        contrada.Broker() as broker,
        gateway_process(
            "--url", broker.url, "--http", "127.0.0.1:0", "--certificate", files[1], "--private-key", files[0]
        ) as (_, url),
    ):
        import ssl
        from urllib.request import urlopen

        assert url.startswith("https://")
        context = ssl.create_default_context(cafile=files[1])
        context.check_hostname = False
        with urlopen(f"{url}/healthz", context=context, timeout=30) as answer:
            assert answer.read() == b"ok\n"


def test_a_broker_starts_a_gateway_beside_it_and_ends_it() -> None:
    words = [*COMMAND, "broker", "--listen", "tcp://127.0.0.1:*", "--http", "127.0.0.1:0", "--mqtt", "127.0.0.1:0"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        said, doors = [], []
        for line in process.stderr:
            said.append(line)
            doors += re.findall(r"listens on ((?:http|mqtt)://\S+);", line)
            if len(doors) == 2:
                break
        assert len(doors) == 2, "".join(said)
        from urllib.request import urlopen

        with urlopen(f"{doors[0]}/healthz", timeout=30) as answer:
            assert answer.read() == b"ok\n"
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
        assert process.wait(30) == 0
        with pytest.raises(OSError, match="refused"):
            urlopen(f"{doors[0]}/healthz", timeout=30)
    finally:
        process.kill()
        process.wait(30)
        process.stderr.close()
