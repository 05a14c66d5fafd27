import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AREA, DOT, LINE, OWN, drawParts, flatY, ownerAt, pack } from '../src/packed.js';
import { around, boundsOf, drawable, identityOf, looksLikeDegrees, placesOf, touching, union } from '../src/places.js';
import { brief, circle, curlOf, filterOf, geometryOf, pythonOf, shellText, short, summary, wktOf } from '../src/writing.js';

const square = { type: 'Polygon', coordinates: [[[0, 0], [2, 0], [2, 2], [0, 0]]] };

test('every geometry is taken apart', () => {
  const all = { type: 'GeometryCollection', geometries: [
    square, { type: 'MultiPolygon', coordinates: [square.coordinates] }, { type: 'Point', coordinates: [1, 1] },
    { type: 'MultiPoint', coordinates: [[1, 2]] }, { type: 'LineString', coordinates: [[0, 0], [5, 5]] },
    { type: 'MultiLineString', coordinates: [[[0, 0], [1, 1]]] }, { type: 'Feature', geometry: { type: 'Point', coordinates: [9, -9] } },
    { type: 'Unheard' }, null ] };
  const shapes = drawable(all);
  assert.deepEqual([shapes.rings.length, shapes.lines.length, shapes.points.length], [2, 2, 3]);
  assert.deepEqual(boundsOf(shapes), [0, -9, 9, 5]);
});

test('attributes with a place are found, others are not', () => {
  const { shapes, names } = placesOf({ wind: 3, area: square, time: { type: 'Time', time: 'x' }, tags: ['a'], at: { type: 'Point', coordinates: [1, 1] } });
  assert.deepEqual(names, ['area', 'at']);
  assert.equal(shapes.points.length, 1);
  assert.equal(boundsOf(placesOf({ wind: 3 }).shapes), null);
});

test('bounds', () => {
  assert.ok(touching([0, 0, 1, 1], [1, 1, 2, 2]));
  assert.ok(!touching([0, 0, 1, 1], [1.1, 0, 2, 2]));
  assert.deepEqual(union(null, [0, 0, 1, 1]), [0, 0, 1, 1]);
  assert.deepEqual(union([0, 0, 1, 1], [-1, 0.5, 0, 3]), [-1, 0, 1, 3]);
});

test('degrees are told from small plane numbers', () => {
  assert.ok(looksLikeDegrees([-87, 24, -79, 31]));
  assert.ok(!looksLikeDegrees([0, 0, 100, 50]));
  assert.ok(!looksLikeDegrees([0, 0, 5000, 50]));
  assert.ok(!looksLikeDegrees(null));
});

test('filters put together what is there', () => {
  assert.equal(filterOf('area', 'overlaps', ' POLYGON((0 0, 1 0, 1 1)) ', 'wind > 9'), 'area overlaps POLYGON((0 0, 1 0, 1 1)) and wind > 9');
  assert.equal(filterOf('area', 'overlaps', 'BOX(0 0, 1 1)', 'a = 1 or b = 2'), 'area overlaps BOX(0 0, 1 1) and (a = 1 or b = 2)');
  assert.equal(filterOf('area', 'overlaps', '', 'a = 1 or b = 2'), 'a = 1 or b = 2');
  assert.equal(filterOf('my area', 'inside', 'BOX(0 0, 1 1)', ''), '"my area" inside BOX(0 0, 1 1)');
});

test('rings are closed and rounded to what the map shows', () => {
  assert.equal(wktOf([[0, 0], [1, 0], [1, 1.000000001]]), 'POLYGON((0 0, 1 0, 1 1, 0 0))');
  assert.equal(circle([5, 5], 1).length, 48);
  assert.equal(short(1234.56789, 5000), '1234.6');
});

test('long rings are cut short, other text is not', () => {
  const long = Array.from({ length: 40 }, (_, i) => `${i} ${i}`).join(', ');
  assert.match(brief(`area inside POLYGON((${long})) and wind > 3`), /^area inside POLYGON\(\(0 0, .* … 40 points\)\) and wind > 3$/);
  assert.equal(brief('a inside POLYGON((0 0, 1 0, 1 1))'), 'a inside POLYGON((0 0, 1 0, 1 1))');
});

test('code is quoted', () => {
  assert.match(pythonOf('s = "a\\"b"', 'tcp://x:1'), /subscribe\("s = \\"a\\\\\\"b\\""\)/);
  assert.equal(shellText("it's"), "'it'\\''s'");
  assert.match(curlOf('a > 1', 'http://h', true), /Authorization/);
});

test('what was written is drawn with its holes and parts', () => {
  const ring = [[0, 0], [9, 0], [9, 9], [0, 0]], hole = [[5, 1], [8, 1], [8, 2]];
  assert.deepEqual(geometryOf('POLYGON((0 0, 9 0, 9 9, 0 0), (5 1, 8 1, 8 2))').coordinates, [[ring, hole]]);
  assert.deepEqual(geometryOf('MULTIPOLYGON (((0 0,9 0,9 9,0 0) , (5 1,8 1,8 2)) , ((0 0, 9 0, 9 9, 0 0)))').coordinates, [[ring, hole], [ring]]);
  assert.deepEqual(geometryOf('box(0 -1, 2 3e0)').coordinates[0].slice(0, 3), [[0, -1], [2, -1], [2, 3]]);
  for (const other of ['', 'POLYGON((', 'POINT(1 2)', 'BOX(1 2)', 'POLYGON(())']) assert.equal(geometryOf(other), null);
  assert.equal(summary({ area: geometryOf('POLYGON((0 0, 9 0, 9 9, 0 0), (5 1, 8 1, 8 2, 5 1))') }), 'area region of 6 vertices');
});

test('a distance from a point is a circle, in metres an ellipse of degrees', () => {
  const near = boundsOf(drawable(around({ type: 'Point', coordinates: [3, 1] }, 2, '')));
  assert.deepEqual(near.map((n) => Math.round(n * 1e9) / 1e9), [1, -1, 5, 3]);
  const [x1, y1, x2, y2] = boundsOf(drawable(around({ type: 'Point', coordinates: [12, 60] }, 111195, 'm')));
  assert.ok(Math.abs(y2 - y1 - 2) < 1e-9 && Math.abs(x2 - x1 - 4) < 1e-6);
  assert.equal(around({ type: 'LineString', coordinates: [] }, 2, '').type, 'LineString');
});

test('what is about the same thing has one identity', () => {
  assert.equal(identityOf({ vehicle: 7, n: 1 }), 'vehicle 7');
  assert.equal(identityOf({ n: 1 }), null);
  assert.equal(summary({ wind: 3, s: 'x', p: { type: 'Point', coordinates: [1, 2] } }), 'wind 3, s x, p (1, 2)');
});

const hexagons = [
  { shapes: { rings: [[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [6, 4], [6, 6], [4, 6], [4, 4]]]], lines: [], points: [] } },
  { shapes: { rings: [[[[1, 1], [3, 1], [3, 3], [1, 3]]]], lines: [[[20, 0], [30, 10]]], points: [[50, 50]] }, own: true },
];

test('shapes are packed into flat arrays, and found again', () => {
  const packed = pack(hexagons, 'plane');
  assert.deepEqual([...packed.parts], [0, 2, 3, 4, 5]);
  assert.deepEqual([...packed.rings], [0, 5, 10, 14, 16, 17]);
  assert.deepEqual([...packed.owners], [0, 1, 1, 1]);
  assert.deepEqual([...packed.kinds], [AREA, AREA + OWN, LINE + OWN, DOT + OWN]);
  assert.deepEqual([...packed.bounds.slice(8, 12)], [20, 0, 30, 10]);
  const at = (x, y) => ownerAt(packed, x, y, 0.5);
  assert.equal(at(2, 2), 1, 'the smaller of two');
  assert.equal(at(8, 8), 0);
  assert.equal(at(5, 5), -1, 'a hole');
  assert.equal(at(25, 5.3), 1, 'near a line');
  assert.equal(at(25, 8), -1);
  assert.equal(at(50.2, 49.9), 1);
  assert.equal(ownerAt(pack([], 'plane'), 0, 0, 1), -1);
});

test('what is found is what a slow search finds', () => {
  let seed = 7;
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  const fences = Array.from({ length: 200 }, () => {
    const [x, y, size] = [100 * random(), 60 * random(), 1 + 9 * random()];
    return { size, shapes: { rings: [[[[x - size, y - size], [x + size, y - size], [x + size, y + size], [x - size, y + size]]]], lines: [], points: [] } };
  });
  for (const mode of ['plane', 'lonlat']) {
    const packed = pack(fences, mode);
    for (let n = 0; n < 300; n++) {
      const [x, y] = [100 * random(), 60 * random()];
      const holding = fences.filter(({ shapes: { rings: [[[[x1, y1], , [x2, y2]]]] } }) => x1 < x && x < x2 && y1 < y && y < y2);
      const found = ownerAt(packed, x, flatY(y, mode), 0);
      if (mode === 'plane') assert.equal(found < 0 ? null : fences[found], holding.sort((a, b) => a.size - b.size)[0] ?? null);
      else assert.equal(found >= 0, holding.length > 0);
    }
  }
});

test('parts are drawn where they are, and left out where they are not', () => {
  const drawn = [];
  const context = { beginPath() {}, stroke() {}, moveTo() {}, lineTo() {}, fillRect: (...box) => drawn.push(['rect', ...box]), fill: () => drawn.push(['fill']) };
  globalThis.Path2D = class { moveTo() {} lineTo() {} };
  const packed = pack(hexagons, 'plane');
  assert.equal(drawParts(context, packed, [0, 0, 20, 20], 200, 200, {}), 3);
  assert.deepEqual(drawn, [['fill'], ['fill']]);
  drawn.length = 0;
  assert.equal(drawParts(context, packed, [-1000, -1000, 1000, 1000], 200, 200, {}), 4);
  assert.deepEqual(drawn.map(([kind]) => kind), ['rect', 'rect', 'rect', 'rect'].slice(0, drawn.length), 'specks and a point');
  assert.ok(Math.abs(flatY(0, 'lonlat')) < 1e-12);
  assert.ok(flatY(60, 'lonlat') > 70);
});
