// What of a notification or filter can be drawn: GeoJSON as the gateway writes it, to rings, lines and points.
// Pure functions; tested with node.

import { circle } from './writing.js';

/** The shapes of one GeoJSON geometry: {rings: [[outer, ...holes]], lines: [], points: []}. */
export function drawable(geometry, into = { rings: [], lines: [], points: [] }) {
  if (!geometry || typeof geometry !== 'object') return into;
  const c = geometry.coordinates;
  switch (geometry.type) {
    case 'Point': into.points.push(c); break;
    case 'MultiPoint': into.points.push(...c); break;
    case 'LineString': into.lines.push(c); break;
    case 'MultiLineString': into.lines.push(...c); break;
    case 'Polygon': into.rings.push(c); break;
    case 'MultiPolygon': into.rings.push(...c); break;
    case 'GeometryCollection': for (const each of geometry.geometries ?? []) drawable(each, into); break;
    case 'Feature': drawable(geometry.geometry, into); break;
    default:
  }
  return into;
}

const METRES = 111195; // of a degree of latitude

/** What is within a distance of a point, as a ring: in degrees, where there is a unit. Of other geometries themselves. */
export function around(geometry, distance, unit) {
  if (geometry.type !== 'Point') return geometry;
  const [x, y] = geometry.coordinates;
  const radius = unit ? distance / METRES : distance;
  const ring = circle([x, y], radius, unit ? 1 / Math.max(0.05, Math.cos((y * Math.PI) / 180)) : 1);
  return { type: 'Polygon', coordinates: [[...ring, ring[0]]] };
}

const SHAPES = new Set(['Point', 'MultiPoint', 'LineString', 'MultiLineString', 'Polygon', 'MultiPolygon', 'GeometryCollection', 'Feature']);

/** All that can be drawn of a notification's attributes; the names of those that have a place. */
export function placesOf(attributes) {
  const shapes = { rings: [], lines: [], points: [] };
  const names = [];
  for (const [name, value] of Object.entries(attributes)) {
    if (value && typeof value === 'object' && SHAPES.has(value.type)) {
      drawable(value, shapes);
      names.push(name);
    }
  }
  return { shapes, names };
}

/** [x1, y1, x2, y2] of shapes, or null where there are none. */
export function boundsOf({ rings, lines, points }) {
  let x1 = Infinity, y1 = Infinity, x2 = -Infinity, y2 = -Infinity;
  const take = ([x, y]) => {
    if (x < x1) x1 = x;
    if (x > x2) x2 = x;
    if (y < y1) y1 = y;
    if (y > y2) y2 = y;
  };
  for (const polygon of rings) polygon[0].forEach(take);
  for (const line of lines) line.forEach(take);
  points.forEach(take);
  return x1 <= x2 ? [x1, y1, x2, y2] : null;
}

export function centre(bounds) {
  return [(bounds[0] + bounds[2]) / 2, (bounds[1] + bounds[3]) / 2];
}

export function touching(a, b) {
  return a[0] <= b[2] && a[2] >= b[0] && a[1] <= b[3] && a[3] >= b[1];
}

export function union(a, b) {
  if (!a) return b;
  if (!b) return a;
  return [Math.min(a[0], b[0]), Math.min(a[1], b[1]), Math.max(a[2], b[2]), Math.max(a[3], b[3])];
}

/** Whether coordinates look like degrees: they fit, and are not just small numbers around zero. */
export function looksLikeDegrees(bounds) {
  if (!bounds) return false;
  const [x1, y1, x2, y2] = bounds;
  const fits = x1 >= -180 && x2 <= 180 && y1 >= -90 && y2 <= 90;
  return fits && (x1 < -20 || x2 > 101 || y1 < -20) && x2 - x1 < 300;
}

const IDENTITIES = ['track', 'vehicle', 'mmsi', 'ship', 'storm', 'trip', 'device', 'topic'];

/** What a notification is about, if several tell of the same thing: its track is drawn. */
export function identityOf(attributes) {
  for (const name of IDENTITIES) {
    const value = attributes[name];
    if (typeof value === 'string' || typeof value === 'number') return `${name} ${value}`;
  }
  return null;
}
