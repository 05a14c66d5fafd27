"""Filters of geodata: frames, collections and lists of shapes; what is wrong, and in which row."""

from __future__ import annotations

import subprocess
import sys

import pandas as pd
import pytest
import shapely

import contrada
from contrada import ForwardingTable, InvalidValue, Point, Relation, geo

SHAPES = [shapely.box(0, 0, 4, 4).difference(shapely.box(1, 1, 2, 2)), shapely.box(5, 5, 6, 6), shapely.box(0, 0, 9, 9)]
FEATURES = {
    "type": "FeatureCollection",
    "features": [
        {"type": "Feature", "properties": {}, "geometry": shapely.geometry.mapping(shape)} for shape in SHAPES
    ],
}


class Carrier:
    """Something that has features, as a GeoDataFrame has them."""

    __geo_interface__ = FEATURES


def made(geodata, **options):
    return [str(each) for each in contrada.geo.filters(geodata, "pos", **options)]


EXPECTED = [str(contrada.attr("pos").inside(contrada.Region.of(shape))) for shape in SHAPES]


def test_whatever_has_shapes_will_do():
    frame = pd.DataFrame({"id": ["a", "b", "c"], "geometry": SHAPES})
    assert made(frame) == EXPECTED
    assert made(frame.rename(columns={"geometry": "shape"}), geometry="shape") == EXPECTED
    assert made(frame["geometry"]) == EXPECTED
    assert made(FEATURES) == made(Carrier()) == made(FEATURES["features"]) == made(SHAPES) == EXPECTED
    assert made([shape.wkt for shape in SHAPES]) == EXPECTED
    assert made(FEATURES["features"][1]) == EXPECTED[1:2]
    assert made([]) == []


def test_a_geodataframe():
    geopandas = pytest.importorskip("geopandas")
    frame = geopandas.GeoDataFrame({"id": ["a", "b", "c"]}, geometry=SHAPES)
    assert made(frame) == made(frame.geometry) == EXPECTED
    assert made(frame.rename_geometry("where")) == EXPECTED
    table = ForwardingTable()
    table.add_many(zip(frame["id"], geo.filters(frame, "pos"), strict=True))
    assert table.match({"pos": Point(1.5, 1.5)}) == {"c"}
    assert table.match({"pos": Point(3, 3)}) == {"a", "c"}


@pytest.mark.parametrize("relation", [*Relation, "intersects"])
def test_relations(relation):
    assert made(SHAPES, relation=relation) == [text.replace(" inside ", f" {relation!s} ") for text in EXPECTED]


@pytest.mark.parametrize(
    ("geodata", "options", "message"),
    [
        (SHAPES, {"relation": "near"}, "'near' is not a relation of regions: one of disjoint, .*intersects"),
        (SHAPES, {"relation": "exists"}, "not a relation"),
        (SHAPES, {"geometry": "shape"}, "names a column, and a list has none"),
        (pd.DataFrame({"x": [1]}), {}, "no column 'geometry'"),
        ([*SHAPES, shapely.Point(0, 0)], {}, "row 3: .*a point is contained in a region"),
        (pd.DataFrame({"geometry": [SHAPES[0], None]}, index=["a", "b"]), {}, "row 'b': no shape"),
        ({"type": "FeatureCollection"}, {}, "no features"),
        (7, {}, "an int is no frame|a int is no frame"),
        ("POLYGON((0 0, 1 0, 1 1))", {}, "a str is no frame"),
    ],
)
def test_what_is_wrong_is_told_with_its_row(geodata, options, message):
    with pytest.raises(InvalidValue, match=message):
        geo.filters(geodata, "pos", **options)


def test_geopandas_is_not_loaded():
    code = "import sys, contrada; contrada.geo.filters([], 'x'); assert 'geopandas' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_lines_and_points_are_taken_where_the_relation_is():
    route = contrada.Line([(0, 0), (9, 9)])
    assert contrada.geo.filters([route], "area", relation="crosses") == [contrada.attr("area").crosses(route)]
    assert contrada.geo.filters([contrada.Point(1, 2)], "area", relation="contains") == [
        contrada.attr("area").contains(contrada.Point(1, 2))
    ]
    with pytest.raises(contrada.InvalidValue, match=r"row 0: .*of a line one asks"):
        contrada.geo.filters([route], "area", relation="equals")
    with pytest.raises(contrada.InvalidValue, match="row 1: no shape"):
        contrada.geo.filters([route, None], "area", relation="crosses")
