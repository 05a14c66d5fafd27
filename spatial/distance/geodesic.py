"""Distances on the Earth: geodesics of the WGS 84 ellipsoid, in metres, between positions in degrees.

Whether two positions are within a length is mostly told by the straight line through the Earth between them, their
*chord* c: no path is shorter, and a path whose curvature nowhere exceeds 1/R, as that of a geodesic does not with R
the ellipsoid's smallest radius of curvature, is no longer than the arc 2 R asin(c / 2R). Between both the geodesic is
computed by Vincenty's series (Direct and Inverse Solutions of Geodesics on the Ellipsoid, 1975), right to
hundredths of a millimetre over the lengths that are asked for here, `LONGEST` at most.

Edges are straight in degrees (RFC 7946, 3.1.1), neither geodesics nor straight lines in space: the nearest position on
one is looked for. Edges are cut into pieces of at most 5 degrees, along each of which the chord to a position falls and
then rises, or rises and then falls; where its derivative changes sign is found by regula falsi. The position at the
smallest chord is not quite that of the shortest geodesic, since the ellipsoid is curved unequally; but as both are
minima the lengths differ by the square of that: by 0.02 mm at 1,000 km, and less the shorter.
"""

from __future__ import annotations

import math
from typing import Final

from contrada.spatial.storage.jit import inline_kernel, kernel

LONGEST: Final = 1e7
"""Metres: the longest distance that may be asked for, a quarter of the way around."""

_A: Final = 6378137.0
_F: Final = 1 / 298.257223563
_B: Final = _A * (1 - _F)
_E2: Final = _F * (2 - _F)
SMALLEST_RADIUS: Final = _B * _B / _A  # of curvature: of a meridian at the equator
EQUATOR: Final = _A  # the smallest radius of curvature across a meridian
LARGEST_RADIUS: Final = _A * _A / _B  # at the poles
_DEGREE: Final = math.pi / 180
_PIECE: Final = 5.0  # degrees
_SLACK: Final = 1e-6  # metres: far above the rounding of positions in space
_STEPS: Final = 100
_FINE: Final = 1e-14  # of an edge
ALL_AROUND: Final = 1e4
"""Degrees: more than any longitude."""
_OUTWARDS: Final = 1.0 + 1e-9
_DEGREES_SLACK: Final = 1e-9  # a tenth of a millimetre, far above rounding
_POLE: Final = 89.999999  # a latitude from which on a window has all longitudes


@kernel
def reach(low: float, high: float, length: float) -> tuple[float, float]:
    """How many degrees of longitude and of latitude `length` metres are at most, from latitudes `low` to `high` on."""
    north = length / SMALLEST_RADIUS / _DEGREE * _OUTWARDS + _DEGREES_SLACK
    furthest = max(abs(low), abs(high)) + north
    if furthest >= _POLE:
        return ALL_AROUND, north
    east = length / (EQUATOR * math.cos(furthest * _DEGREE)) / _DEGREE * _OUTWARDS + _DEGREES_SLACK
    return (ALL_AROUND if east >= 180.0 else east), north


@inline_kernel
def _space(lon: float, lat: float) -> tuple[float, float, float]:
    """A position in space, in metres from the centre."""
    u, v = lon * _DEGREE, lat * _DEGREE
    sine = math.sin(v)
    across = _A / math.sqrt(1.0 - _E2 * sine * sine)
    out = across * math.cos(v)
    return out * math.cos(u), out * math.sin(u), across * (1.0 - _E2) * sine


@kernel
def _toward(px: float, py: float, pz: float, lon: float, lat: float, dlon: float, dlat: float) -> tuple[float, float]:
    """The squared chord from p to a position, and half its derivative as that moves by (dlon, dlat) in a unit."""
    u, v = lon * _DEGREE, lat * _DEGREE
    sin_u, cos_u, sin_v, cos_v = math.sin(u), math.cos(u), math.sin(v), math.cos(v)
    root = 1.0 - _E2 * sin_v * sin_v
    across = _A / math.sqrt(root)
    north = across * (1.0 - _E2) / root * dlat * _DEGREE
    east = across * cos_v * dlon * _DEGREE
    x, y, z = across * cos_v * cos_u - px, across * cos_v * sin_u - py, across * (1.0 - _E2) * sin_v - pz
    moved_x, moved_y = -sin_v * cos_u * north - sin_u * east, -sin_v * sin_u * north + cos_u * east
    return x * x + y * y + z * z, x * moved_x + y * moved_y + z * cos_v * north


@kernel
def geodesic_length(lon1: float, lat1: float, lon2: float, lat2: float) -> float:
    """The length of the geodesic between two positions that are not nearly antipodal."""
    t1, t2 = math.tan(lat1 * _DEGREE) * (1.0 - _F), math.tan(lat2 * _DEGREE) * (1.0 - _F)
    cos1, cos2 = 1.0 / math.sqrt(1.0 + t1 * t1), 1.0 / math.sqrt(1.0 + t2 * t2)
    sin1, sin2 = t1 * cos1, t2 * cos2
    apart = (lon2 - lon1 - 360.0 * math.floor((lon2 - lon1 + 180.0) / 360.0)) * _DEGREE
    turn = apart
    sigma = sin_sigma = cos_sigma = cos_2m = squared = 0.0
    for _ in range(_STEPS):
        sin_turn, cos_turn = math.sin(turn), math.cos(turn)
        sin_sigma = math.hypot(cos2 * sin_turn, cos1 * sin2 - sin1 * cos2 * cos_turn)
        if sin_sigma == 0.0:
            return 0.0
        cos_sigma = sin1 * sin2 + cos1 * cos2 * cos_turn
        sigma = math.atan2(sin_sigma, cos_sigma)
        sine = cos1 * cos2 * sin_turn / sin_sigma
        squared = 1.0 - sine * sine
        cos_2m = cos_sigma - 2.0 * sin1 * sin2 / squared if squared > 0.0 else 0.0
        c = _F / 16.0 * squared * (4.0 + _F * (4.0 - 3.0 * squared))
        before = turn
        turn = apart + (1.0 - c) * _F * sine * (
            sigma + c * sin_sigma * (cos_2m + c * cos_sigma * (2.0 * cos_2m * cos_2m - 1.0))
        )
        if abs(turn - before) < 1e-15:
            break
    u2 = squared * (_A * _A - _B * _B) / (_B * _B)
    a = 1.0 + u2 / 16384.0 * (4096.0 + u2 * (-768.0 + u2 * (320.0 - 175.0 * u2)))
    b = u2 / 1024.0 * (256.0 + u2 * (-128.0 + u2 * (74.0 - 47.0 * u2)))
    twice = 2.0 * cos_2m * cos_2m - 1.0
    third = cos_2m * (4.0 * sin_sigma * sin_sigma - 3.0) * (4.0 * cos_2m * cos_2m - 3.0)
    change = b * sin_sigma * (cos_2m + b / 4.0 * (cos_sigma * twice - b / 6.0 * third))
    return _B * a * (sigma - change)


@kernel
def positions_within(lon1: float, lat1: float, lon2: float, lat2: float, length: float) -> bool:
    """Whether two positions are at most `length` metres apart."""
    ax, ay, az = _space(lon1, lat1)
    bx, by, bz = _space(lon2, lat2)
    chord = math.sqrt((ax - bx) ** 2 + (ay - by) ** 2 + (az - bz) ** 2)
    if chord > length + _SLACK:
        return False
    if chord < 2.0 * SMALLEST_RADIUS and 2.0 * SMALLEST_RADIUS * math.asin(chord / (2.0 * SMALLEST_RADIUS)) < (
        length - _SLACK
    ):
        return True
    if lat1 == lat2 and abs(lat1) == 90.0:
        return True  # one pole, whatever the longitudes
    return geodesic_length(lon1, lat1, lon2, lat2) <= length


@kernel
def _nearest_on(
    px: float, py: float, pz: float, lon: float, lat: float, dlon: float, dlat: float, low: float, high: float
) -> float:
    """The parameter, from `low` to `high`, at which the edge from (lon, lat) by (dlon, dlat) is nearest to p."""
    from_low, slope_low = _toward(px, py, pz, lon + low * dlon, lat + low * dlat, dlon, dlat)
    from_high, slope_high = _toward(px, py, pz, lon + high * dlon, lat + high * dlat, dlon, dlat)
    if slope_low >= 0.0 or slope_high <= 0.0:
        return low if from_low <= from_high else high
    for _ in range(_STEPS):
        # Regula falsi, the Illinois way: an end that stays has its slope halved.
        middle = (low * slope_high - high * slope_low) / (slope_high - slope_low)
        if not low < middle < high:
            middle = 0.5 * (low + high)
        slope = _toward(px, py, pz, lon + middle * dlon, lat + middle * dlat, dlon, dlat)[1]
        if slope > 0.0:
            high, slope_high, slope_low = middle, slope, 0.5 * slope_low
        elif slope < 0.0:
            low, slope_low, slope_high = middle, slope, 0.5 * slope_high
        else:
            return middle
        if high - low < _FINE:
            break
    return 0.5 * (low + high)


@inline_kernel
def _pieces(dlon: float, dlat: float) -> int:
    return max(1, int(max(abs(dlon), abs(dlat)) / _PIECE) + 1)


@inline_kernel
def _half_length(dlon: float, dlat: float, pieces: int) -> float:
    """At least half of how long a piece of an edge is, in metres."""
    return 0.5 * LARGEST_RADIUS * _DEGREE * math.hypot(dlon, dlat) / pieces + _SLACK


@kernel
def position_near_edge(
    lon: float, lat: float, lon1: float, lat1: float, lon2: float, lat2: float, length: float
) -> bool:
    """Whether a position is at most `length` metres away from an edge, straight in degrees."""
    if positions_within(lon, lat, lon1, lat1, length):
        return True
    dlon, dlat = lon2 - lon1, lat2 - lat1
    if dlon == 0.0 and dlat == 0.0:
        return False
    px, py, pz = _space(lon, lat)
    pieces = _pieces(dlon, dlat)
    half = _half_length(dlon, dlat, pieces)
    for k in range(pieces):
        middle = (k + 0.5) / pieces
        chord = math.sqrt(_toward(px, py, pz, lon1 + middle * dlon, lat1 + middle * dlat, dlon, dlat)[0])
        if chord > length + half:
            continue
        t = _nearest_on(px, py, pz, lon1, lat1, dlon, dlat, k / pieces, (k + 1) / pieces)
        if positions_within(lon, lat, lon1 + t * dlon, lat1 + t * dlat, length):
            return True
    return False


@kernel
def _between(
    alon: float, alat: float, adlon: float, adlat: float, blon: float, blat: float, bdlon: float, bdlat: float,
    t: float, low: float, high: float,
) -> tuple[float, float]:  # fmt: skip
    """Of the position at t on an edge: the nearest parameter on a piece of another, and the slope of the chord."""
    lon, lat = alon + t * adlon, alat + t * adlat
    x, y, z = _space(lon, lat)
    u = _nearest_on(x, y, z, blon, blat, bdlon, bdlat, low, high)
    qx, qy, qz = _space(blon + u * bdlon, blat + u * bdlat)
    return u, _toward(qx, qy, qz, lon, lat, adlon, adlat)[1]


@kernel
def edges_near(
    alon1: float, alat1: float, alon2: float, alat2: float,
    blon1: float, blat1: float, blon2: float, blat2: float, length: float,
) -> bool:  # fmt: skip
    """Whether two edges that do not cross are at most `length` metres apart."""
    adlon, adlat, bdlon, bdlat = alon2 - alon1, alat2 - alat1, blon2 - blon1, blat2 - blat1
    a_pieces, b_pieces = _pieces(adlon, adlat), _pieces(bdlon, bdlat)
    reach = _half_length(adlon, adlat, a_pieces) + _half_length(bdlon, bdlat, b_pieces)
    for i in range(a_pieces):
        x, y, z = _space(alon1 + (i + 0.5) / a_pieces * adlon, alat1 + (i + 0.5) / a_pieces * adlat)
        for j in range(b_pieces):
            at = (j + 0.5) / b_pieces
            if math.sqrt(_toward(x, y, z, blon1 + at * bdlon, blat1 + at * bdlat, bdlon, bdlat)[0]) > length + reach:
                continue
            low, high = i / a_pieces, (i + 1) / a_pieces
            first, last = j / b_pieces, (j + 1) / b_pieces
            u, slope = _between(alon1, alat1, adlon, adlat, blon1, blat1, bdlon, bdlat, low, first, last)
            if positions_within(alon1 + low * adlon, alat1 + low * adlat, blon1 + u * bdlon, blat1 + u * bdlat, length):
                return True
            u, slope_high = _between(alon1, alat1, adlon, adlat, blon1, blat1, bdlon, bdlat, high, first, last)
            if positions_within(
                alon1 + high * adlon, alat1 + high * adlat, blon1 + u * bdlon, blat1 + u * bdlat, length
            ):
                return True
            if slope >= 0.0 or slope_high <= 0.0:
                continue
            for _ in range(_STEPS):
                t = 0.5 * (low + high)
                u, slope = _between(alon1, alat1, adlon, adlat, blon1, blat1, bdlon, bdlat, t, first, last)
                if slope > 0.0:
                    high = t
                else:
                    low = t
                if (high - low) * a_pieces < 1e-12:
                    break
            t = 0.5 * (low + high)
            if positions_within(alon1 + t * adlon, alat1 + t * adlat, blon1 + u * bdlon, blat1 + u * bdlat, length):
                return True
    return False
