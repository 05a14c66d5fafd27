"""A broker of longitudes and latitudes: distances in metres, and what it refuses."""

from __future__ import annotations

import pytest

from contrada import Broker, Client, Point
from contrada.errors import InvalidValue, Refused
from contrada.forwarding.segments.index_directory import write_index
from contrada.forwarding.table.options import TableOptions


def test_distances_in_metres_go_over_the_wire():
    with Broker(crs="lonlat") as broker, Client(broker.url) as client:
        near = client.subscribe("pos within 3 km of POINT(12.4964 41.9028)")
        client.publish({"pos": Point(12.6, 41.9)})
        client.publish({"pos": Point(12.5, 41.9)})
        assert near.get(timeout=10.0)["pos"] == Point(12.5, 41.9)
        with pytest.raises(Refused, match="give it a unit"):
            client.subscribe("pos within 3 of POINT(12.4964 41.9028)")
        with pytest.raises(Refused, match="swapped"):
            client.publish({"pos": Point(41.9, 112.5)})


def test_settings_are_checked():
    with pytest.raises(InvalidValue, match="crs is one of plane, lonlat"):
        Broker(crs="mars")


def test_an_index_of_longitudes_and_latitudes(tmp_path):
    write_index(tmp_path, [("s", "rome", "pos within 3 km of POINT(12.4964 41.9028)")], TableOptions(crs="lonlat"))
    with Broker(crs="lonlat", index=tmp_path) as broker, Client(broker.url) as client:
        rome = client.attach("rome")
        client.publish({"pos": Point(12.6, 41.9)})
        client.publish({"pos": Point(12.5, 41.9)})
        assert rome.get(timeout=10.0)["pos"] == Point(12.5, 41.9)
    with pytest.raises(InvalidValue, match="the crs of the index is lonlat, and this broker's is plane"):
        Broker(index=tmp_path).__enter__()
