"""A broker with a road network, and one without."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from contrada import Broker, Client, ContradaError, CorruptFile, GeoText, InvalidValue, Refused, RoadNetwork
from contrada.broker.node.settings import Settings
from contrada.client.cli.settings import read

if TYPE_CHECKING:
    from pathlib import Path

NEAR = 'post similar {"ipad"} at POINT(1 0) alpha 0.4 tau 0.7'


@pytest.fixture
def street(tmp_path: Path) -> Path:
    np.savez(tmp_path / "street.npz", xy=[(0, 0), (4, 0), (4, 3)], edges=[(0, 1), (1, 2)])
    return tmp_path / "street.npz"


def test_similar_is_delivered_by_a_broker_that_has_the_roads(street: Path) -> None:
    with Broker(roads=street, d_max=10.0, shutdown_timeout=0.5) as broker, Client(broker.url) as client:
        near = client.subscribe(NEAR)
        client.publish({"post": GeoText("no such word", at=(2, 0))})
        client.publish({"post": GeoText("An iPad!", at=(2, 0))})
        assert near.get(timeout=30)["post"] == GeoText("An iPad!", at=(2, 0))


def test_similar_is_refused_by_a_broker_that_has_none() -> None:
    with (
        Broker(shutdown_timeout=0.5) as broker,
        Client(broker.url) as client,
        pytest.raises(Refused, match="road network"),
    ):
        client.subscribe(NEAR)


def test_a_saved_network_has_its_own_d_max(street: Path, tmp_path: Path) -> None:
    RoadNetwork.from_npz(street, d_max=5.0).save(tmp_path / "street")
    Broker(roads=tmp_path / "street").stop()
    with pytest.raises(InvalidValue, match="has its d_max"):
        Broker(roads=tmp_path / "street", d_max=6.0)


@pytest.mark.parametrize("options", [{"roads": 5}, {"d_max": 3.0}, {"roads": "street.npz", "d_max": "far"}])
def test_settings_that_make_no_sense(options: dict[str, object]) -> None:
    with pytest.raises(InvalidValue, match=r"roads|d_max"):
        Settings.of(options)


def test_a_network_that_cannot_be_read_stops_the_broker_from_starting(street: Path, tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("not one")
    for name in ("text.npz", "missing.npz"):
        with pytest.raises(CorruptFile, match=name):
            Broker(roads=tmp_path / name)
    with pytest.raises(ContradaError, match="d_max"):
        Broker(roads=street, d_max=-1.0)


def test_the_file_is_found_beside_the_configuration(street: Path, tmp_path: Path) -> None:
    (tmp_path / "contrada.toml").write_text('[broker]\nroads = "street.npz"\nd_max = 4.0\n')
    options = read(tmp_path / "contrada.toml").broker
    assert options == {"roads": str(street), "d_max": 4.0}
