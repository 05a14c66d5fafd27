"""docker/, without Docker: the files parse and fit together, and the commands in them run as processes."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from contrada.client.cli import main as cli
from contrada.client.cli.local import broker_process
from contrada.forwarding.recording.reader import Accepted, Recording, Stopped

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docker"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "entrypoint" not in service and "build" in service}
KNOWN = {"FROM", "ENV", "RUN", "WORKDIR", "COPY", "USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n", " ", (FOLDER / "Dockerfile").read_text())
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def parse_contrada(arguments: list[str]) -> None:
    """Have the command line read them, without doing anything; an error if it would complain."""
    command = typer.main.get_command(cli.app)
    name, *rest = arguments
    while True:
        command = command.commands[name]
        if not hasattr(command, "commands"):
            break
        name, *rest = rest
    command.make_context(name, rest)


def test_the_dockerfile_s_stages_and_sources_exist() -> None:
    stages: dict[str, str] = {}
    ignored = (ROOT / ".dockerignore").read_text().split()
    users = []
    for name, rest in instructions():
        assert name in KNOWN
        words = rest.split()
        if name == "FROM":
            image, _, stage = words
            assert image in stages or _is_plain(image), image
            stages[stage] = image
        elif name == "COPY" and words[0].startswith("--from="):
            assert words[0].removeprefix("--from=") in stages
        elif name == "COPY":
            for source in words[:-1]:
                assert (ROOT / source).exists(), source
                assert f"!{source}" in ignored, source
        elif name == "USER":
            users.append((list(stages)[-1], rest))
        elif name in ("ENTRYPOINT", "CMD") or "CMD" in words:
            assert json.loads(rest[rest.index("[") :])
    assert {"broker", "jobs"} <= stages.keys()
    assert dict(users) == {"broker": "contrada", "jobs": "contrada"}  # the last of each stage: not root


def _is_plain(image: str) -> bool:
    """Whether an image is named without the host of a registry, and with a version."""
    name, colon, tag = image.partition(":")
    return bool(colon and tag) and not re.search(r"[.:]|localhost", name.split("/")[0] if "/" in name else "")


def test_the_dockerfile_s_commands_exist() -> None:
    commands = [json.loads(rest[rest.index("[") :]) for name, rest in instructions() if "[" in rest and name != "RUN"]
    assert commands[0] == ["contrada", "status", "--json"]  # the health check
    for command in commands:
        arguments = command[1:] if command[0] == "contrada" else command
        if arguments not in ([], ["--help"]):
            parse_contrada(arguments)
    modules = re.findall(r"python -m (contrada\.[\w.]+)", (FOLDER / "Dockerfile").read_text())
    assert all((ROOT / "src" / Path(*module.split("."))).with_suffix(".py").exists() for module in modules)


def test_compose_fits_together() -> None:
    stages = {rest.split()[2] for name, rest in instructions() if name == "FROM"}
    addresses = {f"tcp://{name}:7400" for name in SERVICES} | {"tcp://*:7400", "spark://spark-master:7077"}
    for name, service in SERVICES.items():
        if "build" in service:
            build = service["build"]
            assert (FOLDER / build["context"] / build["dockerfile"]).resolve() == FOLDER / "Dockerfile"
            assert build["target"] in stages
        else:
            assert _is_plain(service["image"])
        assert set(service.get("depends_on", ())) <= SERVICES.keys()
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in COMPOSE["volumes"] or (FOLDER / source).is_file(), (name, volume)
        for word in service.get("command", ()):
            assert isinstance(word, str), f"{name}: {word!r} must be quoted"
            if "://" in word:
                assert word in addresses, (name, word)
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:")
    assert len([name for name, service in OURS.items() if service["command"][0] == "broker"]) == 3


@pytest.mark.parametrize("name", sorted(OURS))
def test_the_commands_of_compose_exist(name: str) -> None:
    parse_contrada(OURS[name]["command"])


def test_the_entry_points_of_spark_are_installed() -> None:
    spark = [service["entrypoint"][0] for service in SERVICES.values() if "entrypoint" in service]
    assert spark
    for program in spark:
        assert (Path(sys.executable).parent / program).exists(), f"pyspark does not install {program}"


def test_the_spark_worker_writes_where_its_user_may() -> None:
    (home,) = re.findall(r"--home-dir (\S+)", (FOLDER / "Dockerfile").read_text())
    command = SERVICES["spark-worker"]["command"]
    assert command[command.index("--work-dir") + 1].startswith(f"{home}/")


def test_a_wrong_option_would_be_noticed() -> None:
    with pytest.raises(Exception, match="No such option"):
        parse_contrada(["broker", "--no-such-option"])
    with pytest.raises(KeyError):
        parse_contrada(["no-such-command"])


def test_prometheus_scrapes_every_broker() -> None:
    document = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    (job,) = document["scrape_configs"]
    brokers = {name: service["command"] for name, service in OURS.items() if service["command"][0] == "broker"}
    for command in brokers.values():
        assert command[command.index("--metrics") + 1] == "0.0.0.0:9464"
    assert set(job["static_configs"][0]["targets"]) == {f"{name}:9464" for name in brokers}


def test_the_same_commands_as_processes(cluster: str, tmp_path: Path) -> None:
    """Three brokers, a subscriber at one end, storms at the other, the health check, a replay without a surprise."""
    urls: dict[str, str] = {}
    with ExitStack() as running:
        for name in ("north", "middle", "south"):
            _, urls[name] = running.enter_context(broker_process(*here(name, tmp_path, urls)[1:]))
        health = next(rest for name, rest in instructions() if name == "HEALTHCHECK" and "CMD" in rest)
        for url in urls.values():
            result = contrada(json.loads(health[health.index("[") :])[1:], CONTRADA_URL=url)
            assert json.loads(result.stdout)["broker"] in urls
        while (
            len(json.loads(contrada(["status", "--json"], CONTRADA_URL=urls["north"]).stdout)["overlay"]["brokers"]) < 3
        ):
            pass  # links come up by themselves
        subscribed = start([*here("subscriber", tmp_path, urls), "--count", "1", "--timeout", "120"])
        assert subscribed.stderr is not None
        assert "subscription" in subscribed.stderr.readline()
        shown = contrada(["1" if word == "60" else word for word in here("publisher", tmp_path, urls)])
        assert "storm" in shown.stdout.lower()
        storm, _ = subscribed.communicate(timeout=150)
        assert json.loads(storm)["wind"] > 100
    south, north = Recording(tmp_path / "south"), Recording(tmp_path / "north")
    assert {record.broker for record in north if isinstance(record, Accepted)} == {"south"}
    assert all(isinstance(list(recording)[-1], Stopped) for recording in (south, north))
    told = json.loads(contrada([*here("replay", tmp_path, {**urls, "spark": cluster}), "--json", "--quiet"]).stdout)
    assert told["deliveries"] > 0
    assert (told["compare"]["missing"], told["compare"]["extra"], told["problems"]) == (0, 0, [])


def here(service: str, directory: Path, urls: dict[str, str]) -> list[str]:
    """A service's command with this machine's ports and directories."""
    words = []
    for word in SERVICES[service]["command"]:
        word = word.replace("tcp://*:7400", "tcp://127.0.0.1:*").replace("0.0.0.0:9464", "127.0.0.1:0")
        word = word.replace("spark://spark-master:7077", urls.get("spark", ""))
        word = word.replace("/recordings", str(directory)).replace("/replays", str(directory / "replays"))
        match = re.fullmatch(r"tcp://(\w+):7400", word)
        words.append(urls[match[1]] if match else word)
    return words


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path if entry and Path(entry).exists())
    return {**os.environ, "PYTHONPATH": path, **more}


def contrada(arguments: list[str], **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "contrada", *arguments]
    result = subprocess.run(command, env=environment(**more), capture_output=True, text=True, timeout=200)
    assert result.returncode == 0, f"{shlex.join(command)}: {result.stderr}"
    return result


def start(arguments: list[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "contrada", *arguments]
    return subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
