import assert from 'node:assert/strict';
import { test } from 'node:test';
import { boundsOf, drawable, identityOf, looksLikeDegrees, placesOf, touching, union } from '../src/places.js';
import { brief, circle, curlOf, filterOf, pythonOf, shellText, short, summary, wktOf } from '../src/writing.js';

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

test('what is about the same thing has one identity', () => {
  assert.equal(identityOf({ vehicle: 7, n: 1 }), 'vehicle 7');
  assert.equal(identityOf({ n: 1 }), null);
  assert.equal(summary({ wind: 3, s: 'x', p: { type: 'Point', coordinates: [1, 2] } }), 'wind 3, s x, p (1, 2)');
});
