// Many shapes as few flat arrays, so that they go to another thread and are searched without an object each.
// Pure functions; tested with node.
//
//   coords   x, y of every vertex, rings one after the other; y as the map draws it (see `flatY`)
//   rings    where each ring begins, in vertices; one more at the end
//   parts    where each part begins, in rings; one more at the end. A part is a shell with its holes, a line or a point
//   bounds   x1, y1, x2, y2 of each part, as drawn
//   owners   whose part it is: a place in the list that was packed
//   kinds    AREA, LINE or DOT, of each part; OWN is added for those of this page

export const AREA = 0, LINE = 1, DOT = 2, OWN = 4;

/** A latitude as Mercator draws it, in degrees at the equator; in the plane y is y. */
export function flatY(y, mode) {
  if (mode !== 'lonlat') return y;
  const bounded = Math.max(-85.05, Math.min(85.05, y));
  return (Math.log(Math.tan(Math.PI / 4 + (bounded * Math.PI) / 360)) * 180) / Math.PI;
}

export function pack(fences, mode) {
  let vertices = 0, rings = 0, parts = 0;
  const each = (visit) => {
    fences.forEach(({ shapes, own }, owner) => {
      const more = own ? OWN : 0;
      for (const polygon of shapes.rings) visit(polygon, AREA + more, owner);
      for (const line of shapes.lines) visit([line], LINE + more, owner);
      for (const point of shapes.points) visit([[point]], DOT + more, owner);
    });
  };
  each((polygon) => {
    parts++;
    rings += polygon.length;
    for (const ring of polygon) vertices += ring.length;
  });
  const packed = {
    coords: new Float64Array(2 * vertices), rings: new Int32Array(rings + 1), parts: new Int32Array(parts + 1),
    bounds: new Float64Array(4 * parts), owners: new Int32Array(parts), kinds: new Uint8Array(parts),
  };
  let vertex = 0, ring = 0, part = 0;
  each((polygon, kind, owner) => {
    let x1 = Infinity, y1 = Infinity, x2 = -Infinity, y2 = -Infinity;
    for (const one of polygon) {
      for (const place of one) {
        const x = place[0], y = flatY(place[1], mode);
        packed.coords[2 * vertex] = x;
        packed.coords[2 * vertex + 1] = y;
        vertex++;
        if (x < x1) x1 = x;
        if (x > x2) x2 = x;
        if (y < y1) y1 = y;
        if (y > y2) y2 = y;
      }
      packed.rings[++ring] = vertex;
    }
    packed.bounds.set([x1, y1, x2, y2], 4 * part);
    packed.owners[part] = owner;
    packed.kinds[part] = kind;
    packed.parts[++part] = ring;
  });
  return packed;
}

/** Whose part is at a place (y as drawn), the smallest of those that are; points and lines within `reach`. -1: nobody's. */
export function ownerAt({ coords, rings, parts, bounds, owners, kinds }, x, y, reach) {
  let found = -1, smallest = Infinity;
  for (let part = 0; part < owners.length; part++) {
    const b = 4 * part, kind = kinds[part] & ~OWN, slack = kind === AREA ? 0 : reach;
    if (x < bounds[b] - slack || y < bounds[b + 1] - slack || x > bounds[b + 2] + slack || y > bounds[b + 3] + slack) continue;
    const size = kind === AREA ? (bounds[b + 2] - bounds[b]) * (bounds[b + 3] - bounds[b + 1]) : 0;
    if (size >= smallest) continue;
    const inside = kind === DOT || (kind === AREA ? covers(coords, rings, parts[part], parts[part + 1], x, y) : nearLine(coords, rings[parts[part]], rings[parts[part] + 1], x, y, reach));
    if (inside) [found, smallest] = [owners[part], size];
  }
  return found;
}

function covers(coords, rings, first, last, x, y) {
  let inside = false;
  for (let ring = first; ring < last; ring++) {
    for (let i = rings[ring], j = rings[ring + 1] - 1; i < rings[ring + 1]; j = i++) {
      const xi = coords[2 * i], yi = coords[2 * i + 1], xj = coords[2 * j], yj = coords[2 * j + 1];
      if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
    }
  }
  return inside;
}

function nearLine(coords, first, last, x, y, reach) {
  for (let i = first; i + 1 < last; i++) {
    const ax = coords[2 * i], ay = coords[2 * i + 1], dx = coords[2 * i + 2] - ax, dy = coords[2 * i + 3] - ay;
    const t = Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy || 1)));
    if (Math.hypot(ax + t * dx - x, ay + t * dy - y) <= reach) return true;
  }
  return false;
}

/** Draw parts on a canvas: what of them lies in `window` ([x1, y1, x2, y2] as drawn), which fills it. How many that were. */
export function drawParts(context, { coords, rings, parts, bounds, kinds }, window, width, height, colours) {
  const [x1, y1, x2, y2] = window, sx = width / (x2 - x1), sy = height / (y2 - y1);
  const seen = [];
  for (let part = 0; part < kinds.length; part++) {
    const b = 4 * part;
    if (bounds[b] <= x2 && bounds[b + 2] >= x1 && bounds[b + 1] <= y2 && bounds[b + 3] >= y1) seen.push(part);
  }
  const trace = (part, path) => {
    for (let ring = parts[part]; ring < parts[part + 1]; ring++) {
      const end = rings[ring + 1];
      for (let i = rings[ring]; i < end; i++) {
        const x = (coords[2 * i] - x1) * sx, y = (y2 - coords[2 * i + 1]) * sy;
        if (i === rings[ring]) path.moveTo(x, y);
        else path.lineTo(x, y);
      }
    }
  };
  const outlined = seen.length <= OUTLINED;
  context.lineWidth = seen.length > THIN ? 0.6 : 1;
  context.strokeStyle = colours.outline;
  context.beginPath();
  for (const part of seen) {
    const kind = kinds[part] & ~OWN, b = 4 * part;
    const left = (bounds[b] - x1) * sx, top = (y2 - bounds[b + 3]) * sy, wide = (bounds[b + 2] - bounds[b]) * sx, high = (bounds[b + 3] - bounds[b + 1]) * sy;
    if (kind === DOT) {
      context.fillStyle = colours.outline;
      context.fillRect(left - 3, top - 3, 6, 6);
    } else if (wide < SMALL && high < SMALL) {
      context.fillStyle = colours.small;
      context.fillRect(left, top, Math.max(1, wide), Math.max(1, high));
    } else {
      if (kind === AREA) {
        const path = new Path2D();
        trace(part, path);
        context.fillStyle = kinds[part] & OWN ? colours.own : colours.fence;
        context.fill(path, 'evenodd');
      }
      if (outlined || kind === LINE) trace(part, context);
    }
  }
  context.stroke();
  return seen.length;
}

const SMALL = 3; // pixels: what is smaller is a speck
const OUTLINED = 20000; // parts in a picture, beyond which areas have no outlines: they cost as much as all the rest
const THIN = 5000;
