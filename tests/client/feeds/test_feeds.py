"""Real formats, by small samples made here: what they say arrives, what is wrong is told, hostile ones cost nothing."""

from __future__ import annotations

import http.server
import json
import subprocess
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import Client
from contrada.client.feeds.sources import read_lines, read_whole
from contrada.errors import CodecError, ContradaError
from tests.client.reference import make_broker

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("defusedxml", reason="the libraries of feeds are not installed: contrada[feeds]")
pytest.importorskip("pyais", reason="the libraries of feeds are not installed: contrada[feeds]")
COMMAND = (sys.executable, "-m", "contrada", "feed")

CAP = """<?xml version="1.0" encoding="UTF-8"?>
<alert xmlns="urn:oasis:names:tc:emergency:cap:1.2">
  <identifier>FL-7</identifier><sender>w@example.org</sender><sent>2026-11-18T10:00:00-05:00</sent>
  <status>Actual</status><msgType>Alert</msgType><scope>Public</scope>
  <info><category>Met</category><event>Storm Surge</event><urgency>Immediate</urgency><severity>Extreme</severity>
    <certainty>Observed</certainty><expires>2026-11-18T16:00:00-05:00</expires><headline>Leave now</headline>
    <area><areaDesc>The coast</areaDesc><polygon>27.0,-83.0 27.0,-82.0 28.0,-82.0 28.0,-83.0 27.0,-83.0</polygon></area>
    <area><areaDesc>The islands</areaDesc><circle>24.5,-81.8 20</circle></area>
    <area><areaDesc>Nowhere</areaDesc><polygon>1,1 2,2</polygon></area>
    <area><areaDesc>All else</areaDesc></area>
  </info>
</alert>"""


def test_alerts_have_a_notification_for_each_place():
    from contrada.client.feeds.cap import read_cap

    coast, islands, wrong, rest = read_cap(CAP.encode())
    assert coast["identifier"] == "FL-7"
    assert coast["severity"] == "Extreme"
    assert coast["expires"] == datetime(2026, 11, 18, 21, tzinfo=UTC)
    assert coast["area"].bounds == (-83.0, 27.0, -82.0, 28.0)  # longitude first
    x1, y1, x2, y2 = islands["area"].bounds
    assert (round((y2 - y1) / 2 * 111.195), round((x1 + x2) / 2, 6)) == (20, -81.8)
    assert isinstance(wrong, CodecError)
    assert "FL-7" in str(wrong)
    assert rest["areaDesc"] == "All else"
    assert "area" not in rest


@pytest.mark.parametrize(
    "text",
    [
        "no xml at all",
        "<feed></feed>",
        '<!DOCTYPE a [<!ENTITY x "y">]><alert><identifier>&x;</identifier></alert>',
        '<!DOCTYPE a [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><alert>&b;</alert>',
        '<!DOCTYPE a [<!ENTITY f SYSTEM "file:///etc/passwd">]><alert><identifier>&f;</identifier></alert>',
    ],
)
def test_what_is_no_alert_is_refused(text):
    from contrada.client.feeds.cap import read_cap

    with pytest.raises(CodecError):
        list(read_cap(text.encode()))


def transit() -> bytes:
    from google.transit import gtfs_realtime_pb2 as realtime

    message = realtime.FeedMessage()
    message.header.gtfs_realtime_version = "2.0"
    bus = message.entity.add(id="1").vehicle
    bus.vehicle.id, bus.trip.trip_id, bus.trip.route_id, bus.timestamp = "bus-9", "t-4", "r-2", 1_794_990_000
    bus.position.latitude, bus.position.longitude, bus.position.speed = 43.3, 11.3, 7.5
    bus.current_status = realtime.VehiclePosition.STOPPED_AT
    update = message.entity.add(id="2").trip_update
    update.trip.trip_id = "t-4"
    for stop, delay in (("a", 30), ("b", 240), ("c", 60)):
        update.stop_time_update.add(stop_id=stop).arrival.delay = delay
    alert = message.entity.add(id="3").alert
    alert.effect = realtime.Alert.DETOUR
    alert.header_text.translation.add(text="Palio today")
    alert.informed_entity.add(route_id="r-1")
    alert.informed_entity.add(route_id="r-2")
    return bytes(message.SerializeToString())


def test_vehicles_delays_and_alerts():
    from contrada.client.feeds.gtfs_rt import read_gtfs_rt

    bus, update, first, second = read_gtfs_rt(transit())
    assert (bus["vehicle"], bus["route"], bus["status"], bus["speed"]) == ("bus-9", "r-2", "STOPPED_AT", 7.5)
    assert bus["position"].bounds[0] == pytest.approx(11.3, abs=1e-5)
    assert bus["time"] == datetime.fromtimestamp(1_794_990_000, UTC)
    assert (update["trip"], update["delay"], update["stop"]) == ("t-4", 240, "b")
    assert (first["effect"], first["header"], first["route"], second["route"]) == (
        "DETOUR",
        "Palio today",
        "r-1",
        "r-2",
    )


def ships() -> list[bytes]:
    from pyais import encode_dict

    here = {"type": 1, "mmsi": 247000001, "lon": 10.3, "lat": 43.5, "speed": 12.5, "heading": 511, "status": 0}
    nowhere = {"type": 1, "mmsi": 247000002, "lon": 181, "lat": 91, "speed": 102.3, "course": 360, "heading": 511}
    what = {"type": 5, "mmsi": 247000001, "shipname": "PALIO", "callsign": "IABC", "destination": "LIVORNO"}
    return [line.encode() for each in (here, nowhere, what) for line in encode_dict(each)]


def test_ships_say_where_and_what_they_are():
    from contrada.client.feeds.ais import read_ais

    lines = ships()
    assert len(lines) == 4  # what a ship is takes two sentences
    found = list(
        read_ais([b"# a comment\n", b"$GPGGA,other,talker\n", *lines[:3], b"\\s:1*00\\" + lines[3], b"!AIVDM,1,1,,A"])
    )
    here, *others, what, wrong = found
    assert (here["mmsi"], here["speed"], "heading" in here) == ("247000001", 12.5, False)
    assert here["position"].bounds[:2] == pytest.approx((10.3, 43.5), abs=1e-4)
    assert all("position" not in each for each in others)
    assert (what["shipname"], what["destination"]) == ("PALIO", "LIVORNO")
    assert isinstance(wrong, CodecError)


@given(st.binary(max_size=300))
def test_whatever_comes_is_read_or_told(data):
    from contrada.client.feeds.ais import read_ais
    from contrada.client.feeds.cap import read_cap
    from contrada.client.feeds.gtfs_rt import read_gtfs_rt

    for each in read_ais([b"!AIVDM," + data, data]):
        assert isinstance(each, (dict, CodecError))
    for read in (read_cap, read_gtfs_rt):
        with suppress(CodecError):
            assert all(isinstance(each, (dict, CodecError)) for each in read(data))


@given(st.data())
def test_damaged_feeds_are_read_or_told(data):
    from contrada.client.feeds.ais import read_ais
    from contrada.client.feeds.gtfs_rt import read_gtfs_rt

    def damaged(whole: bytes) -> bytes:
        at = data.draw(st.integers(0, len(whole) - 1))
        return whole[:at] + data.draw(st.binary(max_size=3)) + whole[at + data.draw(st.integers(0, 3)) :]

    for each in read_ais([damaged(line) for line in ships()]):
        assert isinstance(each, (dict, CodecError))
    with suppress(CodecError):
        for each in read_gtfs_rt(damaged(transit())):
            assert isinstance(each, (dict, CodecError))


def test_the_command_publishes_what_a_file_has(tmp_path: Path):
    (tmp_path / "alert.xml").write_text(CAP)
    with make_broker() as broker, Client(broker.url) as client:
        alerts = client.subscribe(
            'severity = "Extreme" and area contains POLYGON((-82.6 27.4, -82.4 27.4, -82.4 27.6))'
        )
        done = subprocess.run(
            [*COMMAND, "cap", str(tmp_path / "alert.xml"), "--url", broker.url],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, "published 3" in done.stderr, "left out" in done.stderr) == (0, True, True), (
            done.stderr
        )
        assert alerts.get(timeout=30)["headline"] == "Leave now"


def test_the_command_prints_lines_of_json(tmp_path: Path):
    (tmp_path / "ships.nmea").write_bytes(b"\n".join(ships()))
    done = subprocess.run(
        [*COMMAND, "ais", str(tmp_path / "ships.nmea"), "--print"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout.splitlines()[0])
    assert first["position"]["type"] == "Point"


def test_addresses_are_read_and_what_is_not_there_is_told(tmp_path: Path):
    class Serve(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"one\ntwo")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        assert read_whole(url) == b"one\ntwo"
        assert list(read_lines(url)) == [b"one", b"two"]
        server.shutdown()
    for source in (str(tmp_path / "none"), url, "tcp://nowhere"):
        with pytest.raises(ContradaError):
            list(read_lines(source))
