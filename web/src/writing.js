// What was drawn, as text: a filter, and how to ask for it in Python and with curl. Pure functions; tested with node.

/** A number in as few digits as the map can show. */
export function short(number, size = 1) {
  const digits = Math.max(0, Math.min(8, 4 - Math.floor(Math.log10(Math.max(size, 1e-9)))));
  return String(Number(number.toFixed(digits)));
}

/** The WKT of a ring that was drawn. */
export function wktOf(ring) {
  const xs = ring.map((p) => p[0]), ys = ring.map((p) => p[1]);
  const size = Math.max(Math.max(...xs) - Math.min(...xs), Math.max(...ys) - Math.min(...ys));
  const points = ring.map(([x, y]) => `${short(x, size)} ${short(y, size)}`);
  if (points[0] !== points.at(-1)) points.push(points[0]);
  return `POLYGON((${points.join(', ')}))`;
}

/** A circle as a ring of 48 points. */
export function circle([x, y], radius, stretch = 1) {
  const ring = [];
  for (let i = 0; i < 48; i++) {
    const angle = (2 * Math.PI * i) / 48;
    ring.push([x + stretch * radius * Math.cos(angle), y + radius * Math.sin(angle)]);
  }
  return ring;
}

const PLAIN = /^[A-Za-z_][A-Za-z0-9_.-]*$/;

/** The filter of a region and other conditions; each may be missing. */
export function filterOf(attribute, relation, region, conditions) {
  const name = PLAIN.test(attribute) ? attribute : JSON.stringify(attribute);
  const parts = [];
  if (region.trim()) parts.push(`${name} ${relation} ${region.trim()}`);
  const others = conditions.trim();
  if (others) parts.push(parts.length && /\bor\b/i.test(others) ? `(${others})` : others);
  return parts.join(' and ');
}

/** A text as Python writes it. */
export function pythonText(text) {
  return JSON.stringify(text).replace(/\u007f/g, '\\x7f');
}

export function pythonOf(filter, url) {
  return [
    'import contrada',
    '',
    `with contrada.Client(${pythonText(url)}) as client:`,
    `    for notification in client.subscribe(${pythonText(filter)}):`,
    '        print(dict(notification))',
  ].join('\n');
}

/** For a shell: a text in single quotes. */
export function shellText(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

export function curlOf(filter, origin, withToken) {
  const header = withToken ? ` -H "Authorization: Bearer $TOKEN"` : '';
  return `curl -N --get ${origin}/v1/subscribe${header} --data-urlencode ${shellText(`filter=${filter}`)}`;
}

/** A notification's attributes in one line. */
export function summary(attributes) {
  return Object.entries(attributes)
    .map(([name, value]) => `${name} ${valueText(value)}`)
    .join(', ');
}

export function valueText(value) {
  if (value === null || typeof value !== 'object') return typeof value === 'string' ? value : JSON.stringify(value);
  if (value.type === 'Point') return `(${value.coordinates.map((c) => short(c)).join(', ')})`;
  if (value.type === 'Time') return value.time;
  if (value.type === 'Feature') return (value.properties?.keywords ?? []).join(' ') || 'keywords';
  if (value.type === 'Polygon' || value.type === 'MultiPolygon') {
    const rings = value.type === 'Polygon' ? value.coordinates : value.coordinates.flat();
    return `region of ${rings.reduce((sum, ring) => sum + ring.length - 1, 0)} vertices`;
  }
  return value.type ?? JSON.stringify(value);
}

const RING = /\(([^()]*\d[^()]*)\)/g;

/** The GeoJSON of a polygon, several, or a box that was drawn or written, for showing it; null for anything else. */
export function geometryOf(text) {
  const numbers = (ring) => (ring.match(/-?\d+(?:\.\d+)?(?:e[+-]?\d+)?/gi) ?? []).map(Number);
  if (/^\s*box/i.test(text)) {
    const [x1, y1, x2, y2] = numbers(text);
    return y2 === undefined ? null : { type: 'Polygon', coordinates: [[[x1, y1], [x2, y1], [x2, y2], [x1, y2], [x1, y1]]] };
  }
  if (!/^\s*(multi)?polygon/i.test(text)) return null;
  const pairs = (ring) => numbers(ring).reduce((found, n, i, all) => (i % 2 ? [...found, [all[i - 1], n]] : found), []);
  const polygons = text.split(/\)\s*\)\s*,/).map((part) => [...`${part})`.matchAll(RING)].map((found) => pairs(found[1])));
  return polygons.every((rings) => rings.length && rings.every((ring) => ring.length > 2)) ? { type: 'MultiPolygon', coordinates: polygons } : null;
}

/** A filter with long rings cut short, for a line. */
export function brief(filter) {
  return filter.replace(/\(\(([^()]*)\)\)/g, (whole, ring) => (ring.length < 60 ? whole : `((${ring.slice(0, 24)} … ${ring.split(',').length} points))`));
}
