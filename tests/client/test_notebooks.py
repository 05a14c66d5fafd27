"""In notebooks: what shows as HTML, what becomes a GeoDataFrame, and the example that runs from top to bottom."""

from __future__ import annotations

import ast
import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import contrada
from contrada import Box, ForwardingTable, GeoText, Point, parse
from contrada.errors import InvalidValue
from tests.client.reference import make_broker

EXAMPLES = Path(__file__).parents[2] / "examples"
HOSTILE = "<script>alert(1)</script>"


def test_nothing_in_a_notebook_is_markup():
    table = ForwardingTable()
    wanted = parse(f'text = "{HOSTILE}" and area inside BOX(0 0, 1 1) or x > 3')
    (first, _) = table.add(HOSTILE, wanted)
    with make_broker() as broker, contrada.Client(broker.url, name=HOSTILE) as client:
        subscription = client.subscribe("true")
        client.publish({HOSTILE: HOSTILE, "area": Box(0, 0, 1, 1), "post": GeoText("ice", at=(1, 2))})
        notification = subscription.get(timeout=30)
    shown = [notification, wanted, next(iter(wanted)), table.explain({"text": "a"}, first)]
    for each in shown:
        html = each._repr_html_()
        assert html.startswith("<table>")
        assert HOSTILE not in html
    assert "✗" in shown[3]._repr_html_()
    assert "<svg" in notification._repr_html_()


def test_notifications_become_a_geodataframe():
    pytest.importorskip("geopandas", reason="geopandas is not installed: contrada[notebook]")
    with make_broker() as broker, contrada.Client(broker.url) as client:
        places = client.subscribe("n >= 0")
        client.publish_many(
            [{"n": 0, "at": Point(1, 2)}, {"n": 1, "area": Box(0, 0, 2, 2), "at": Point(5, 5)}, {"n": 2}]
        )
        frame = places.to_geodataframe(n=3, seconds=30)
        assert list(frame["n"]) == [0, 1, 2]
        assert list(frame.geometry.geom_type.fillna("")) == ["Point", "Polygon", ""]
        assert frame.geometry[0].coords[0] == (1, 2)
        client.publish({"n": 7, "area": Box(0, 0, 2, 2), "at": Point(5, 5)})
        assert places.to_geodataframe(n=1, geometry="at").geometry[0].coords[0] == (5, 5)
        assert len(places.to_geodataframe(seconds=0)) == 0
        for wrong in ({}, {"n": 0}, {"n": True}, {"seconds": -1}):
            with pytest.raises(InvalidValue):
                places.to_geodataframe(**wrong)

        async def the_same() -> Any:
            async with contrada.connect(broker.url) as other, other.subscribe("n >= 0") as found:
                await other.publish({"n": 8, "at": Point(1, 1)})
                return await found.to_geodataframe(n=1)

        assert list(asyncio.run(the_same())["n"]) == [8]


def test_the_notebook_runs():
    path = EXAMPLES / "storms.ipynb"
    pytest.importorskip("geopandas", reason="geopandas is not installed: contrada[notebook]")
    names: dict[str, Any] = {}
    shown = 0
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert not cell["outputs"]
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, path.name, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), path.name, "eval"), names)
            shown += value is not None and bool(value._repr_html_())
    assert shown >= 3
    assert len(names["frame"]) == 6
