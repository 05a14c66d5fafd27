"""How a broker relates regions: its settings, its table, and the index it loads."""

from __future__ import annotations

import pytest

from contrada import Broker, Client, Region, Uniform
from contrada.broker.node.settings import Settings
from contrada.errors import InvalidValue
from contrada.forwarding.segments.index_directory import write_index
from contrada.forwarding.segments.segmented_table import SegmentedTable
from contrada.forwarding.table.options import TableOptions

NEEDLES = "POLYGON((0 0, 10 0, 10 10, 5 1, 0 10))"
MESSAGE = Region([(1, 1), (9, 1), (9, 2), (1, 2)])  # overlaps, and sampled at the vertices alone it is inside


@pytest.mark.parametrize(
    ("options", "relations"),
    [
        ({}, "exact"),
        ({"discretization": "exact"}, "exact"),
        ({"discretization": "uniform", "density": 2}, "uniform 2.0"),
        ({"discretization": "uniform", "density": 0, "halo": True}, "uniform 0.0 halo"),
        ({"discretization": Uniform(0.5)}, "uniform 0.5"),
    ],
)
def test_settings_say_how_regions_are_related(options: dict, relations: str) -> None:
    assert Settings.of(options).relations == relations


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"discretization": "coarse"}, "exact or uniform"),
        ({"discretization": "uniform"}, "needs a density"),
        ({"discretization": "uniform", "density": -1}, "density is"),
        ({"discretization": "uniform", "density": 1, "halo": 1}, "halo"),
        ({"density": 1}, "belong to"),
        ({"discretization": Uniform(1.0), "density": 1}, "already"),
        ({"geotext_index": "best"}, "geotext_index"),
        ({"simplify": "yes"}, "simplify"),
    ],
)
def test_what_is_no_setting_is_refused(options: dict, why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        Settings.of(options)


def test_a_broker_answers_by_its_discretization() -> None:
    with (
        Broker(discretization="uniform", density=0, geotext_index="scan", simplify=False) as broker,
        Client(broker.url) as client,
    ):
        sampled, exact = client.subscribe(f"area inside {NEEDLES}"), client.subscribe(f"area overlaps {NEEDLES}")
        client.publish({"area": MESSAGE})
        assert sampled.get(timeout=5)["area"] == MESSAGE
        client.publish({"area": MESSAGE})
        with pytest.raises(TimeoutError):
            exact.get(timeout=0.2)


def test_an_index_is_sampled_as_it_was_built_and_refused_by_other_brokers(tmp_path) -> None:
    write_index(tmp_path, [("1", "desk", f"area inside {NEEDLES}")], TableOptions(discretization=Uniform(0.0)))
    assert SegmentedTable.open(tmp_path).match({"area": MESSAGE}) == {"desk"}
    with pytest.raises(InvalidValue, match=r"relates regions uniform 0\.0, and this broker exact"):
        Broker(index=tmp_path)
    with Broker(index=tmp_path, discretization="uniform", density=0) as broker:
        assert broker.url
