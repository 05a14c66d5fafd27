"""The HTTP port: metrics and checks at their paths, and nothing elsewhere."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from contrada.broker.core.ports import Codec
from contrada.broker.node.http import serve
from contrada.broker.node.metrics import Metrics
from contrada.broker.node.node import Node
from contrada.broker.node.settings import Settings
from contrada.errors import ContradaError
from tests.broker.processes import PATIENCE, Dealer, broker
from tests.naive.delivery import NaiveTable, read_filter, read_notification


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_each_path_has_its_answer():
    wrong = {"/healthz": "", "/readyz": "the cellar is flooded"}
    server = serve(Metrics(), "127.0.0.1:0", {path: lambda path=path: wrong[path] for path in wrong})
    try:
        root = server.url.removesuffix("/metrics")
        assert "contrada_turn_seconds_bucket" in get(server.url)[1]
        assert get(f"{root}/healthz") == (200, "ok\n")
        assert get(f"{root}/readyz") == (503, "the cellar is flooded\n")
        wrong["/readyz"] = ""
        assert get(f"{root}/readyz") == (200, "ok\n")
        for path in ("/", "/metrics/", "/other", ""):
            assert get(root + path)[0] == 404
    finally:
        server.close()


def test_a_restarted_broker_serves_metrics_where_the_one_before_was_just_asked():
    for _ in range(2):
        first = serve(Metrics(), "127.0.0.1:0")
        get(first.url)  # the server hangs up first: the system remembers that for a minute
        first.close()
        again = serve(Metrics(), first.url.removeprefix("http://").removesuffix("/metrics"))
        assert again.url == first.url
        again.close()


def test_a_host_that_cannot_be_resolved_is_named():
    with pytest.raises(ContradaError, match=r"no-such-host\.invalid cannot be resolved"):
        serve(Metrics(), "no-such-host.invalid:0")


def test_the_checks_follow_the_loop(tmp_path):
    settings = Settings(listen="tcp://127.0.0.1:*", timeout=5.0)
    node = Node(settings, NaiveTable(), Codec(read_notification, read_filter), Metrics())
    checks = node.checks()
    try:
        assert checks["/healthz"]() == ""
        assert checks["/readyz"]() == "the broker does not serve yet"
        node._turn()
        assert checks["/readyz"]() == ""
        node.turned -= 6.0
        assert checks["/healthz"]().startswith("the loop has not come round for 6")
        assert checks["/readyz"]() == checks["/healthz"]()
        node._turn()
        assert checks["/healthz"]() == ""
        node.stop()
        assert checks["/readyz"]() == "the broker is shutting down"
        assert checks["/healthz"]() == ""
    finally:
        node.close()


def test_a_turn_that_fails_is_counted_and_the_loop_goes_on():
    settings = Settings(listen="tcp://127.0.0.1:*")
    node = Node(settings, NaiveTable(), Codec(read_notification, read_filter), Metrics())
    turn, failures = node._turn, iter([OSError("first"), MemoryError("second")])

    def fragile():
        if (error := next(failures, None)) is not None:
            raise error
        turn()
        node.stop()

    node._turn = fragile
    node.run()
    assert node.core.counters["internal_errors"] == 2


def test_a_running_broker_tells_its_longest_turn(tmp_path, context):
    with broker(tmp_path, metrics="127.0.0.1:0") as node:
        Dealer(context, node.url).subscribe(1, "x")
        status, text = get(node.metrics)
        assert status == 200
        (line,) = (each for each in text.splitlines() if each.startswith("contrada_longest_turn_seconds{"))
        assert 'step="' in line
        assert 'session="' in line
        assert float(line.split()[-1]) > 0
        assert get(node.metrics.replace("/metrics", "/readyz")) == (200, "ok\n")
