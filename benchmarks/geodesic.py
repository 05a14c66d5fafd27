"""Distances on the Earth beside geographiclib: how many answers are wrong beyond a millimetre of the border.

Pairs of positions up to 1,000 km apart, all over the Earth, some at the poles and on the 180th meridian. Of each pair
the true length is known; a length one millimetre shorter must not reach, one a millimetre longer must. Then positions
and edges that are straight in degrees, of which geographiclib knows nothing: it is asked along the edge in steps, and
between the best of these by golden sections (tests/naive/earth.py).
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from geographiclib.geodesic import Geodesic

from benchmarks.harness import Report
from contrada.spatial.distance.geodesic import geodesic_length, position_near_edge, positions_within
from tests.naive.earth import of_edge

MILLIMETRE = 1e-3
FARTHEST = 1e6


def moved(rng: np.random.Generator, lon: float, lat: float) -> tuple[float, float]:
    """A position 1 cm to 1,000 km away, about."""
    length = float(10 ** rng.uniform(-2, 6))
    turn = float(rng.uniform(0, 2 * np.pi))
    north = length / 111_320 * np.cos(turn)
    east = length / max(111_320 * np.cos(np.radians(lat)), 1.0) * np.sin(turn)
    return float((lon + east + 180) % 360 - 180), float(np.clip(lat + north, -90, 90))


def position(rng: np.random.Generator, number: int) -> tuple[float, float]:
    """Evenly over latitudes; every tenth near a pole, every tenth near the 180th meridian."""
    lon, lat = rng.uniform(-180, 180), rng.uniform(-90, 90)
    if number % 10 == 0:
        lat = rng.choice((-1, 1)) * rng.uniform(89, 90)
    elif number % 10 == 1:
        lon = rng.choice((-1, 1)) * rng.uniform(179.9, 180)
    return float(lon), float(lat)


def compare_pairs(rng: np.random.Generator, count: int) -> dict[str, float]:
    """Positions and positions."""
    wrong, worst, compared = 0, 0.0, 0
    began = time.perf_counter()
    while compared < count:
        a = position(rng, compared)
        b = moved(rng, *a)
        true = Geodesic.WGS84.Inverse(a[1], a[0], b[1], b[0], Geodesic.DISTANCE)["s12"]
        if true <= FARTHEST:
            compared += 1
            worst = max(worst, abs(geodesic_length(*a, *b) - true))
            wrong += not positions_within(*a, *b, true + MILLIMETRE)
            wrong += true > MILLIMETRE and positions_within(*a, *b, true - MILLIMETRE)
    return {"pairs": compared, "wrong": wrong, "worst, mm": worst * 1e3, "seconds": time.perf_counter() - began}


def compare_edges(rng: np.random.Generator, count: int) -> dict[str, float]:
    """Positions and edges of up to some tens of degrees."""
    wrong, compared = 0, 0
    began = time.perf_counter()
    while compared < count:
        a = position(rng, compared)
        span = float(10 ** rng.uniform(-4, 1.5))
        b = a[0] + float(rng.uniform(-span, span)), float(np.clip(a[1] + rng.uniform(-span, span), -90, 90))
        t = float(rng.uniform(-0.2, 1.2))
        p = moved(rng, a[0] + t * (b[0] - a[0]), float(np.clip(a[1] + t * (b[1] - a[1]), -90, 90)))
        true = of_edge(p, a, b)
        if true <= FARTHEST:
            compared += 1
            wrong += not position_near_edge(*p, *a, *b, true + MILLIMETRE)
            wrong += true > MILLIMETRE and position_near_edge(*p, *a, *b, true - MILLIMETRE)
    return {"pairs": compared, "wrong": wrong, "worst, mm": 0.0, "seconds": time.perf_counter() - began}


def main() -> int:
    """As many pairs as asked for, and a thousandth of that with edges."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    given = parser.parse_args()
    report = Report("geodesic")
    rng = np.random.default_rng(18)
    rows = [
        {"what": "positions", **compare_pairs(rng, given.pairs)},
        {"what": "positions and edges", **compare_edges(rng, max(given.pairs // 1000, 10))},
    ]
    report.table("answers beyond a millimetre of the border", rows)
    report.target("wrong", sum(row["wrong"] for row in rows), 0, at_least=False, unit="")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
