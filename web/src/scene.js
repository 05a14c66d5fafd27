// The map itself: what is drawn, and where things are. Holds deck.gl and nothing else does.
//
//   ground     the regions of subscriptions, and those that matched just now: a canvas below (`ground.js`)
//   passing    notifications of the last seconds: a ring of at most MOST, faded by age; points and tracks are the ground's
//   tracks     where things with an identity have been
//   sketch     what is being drawn

import { Deck, MapView, OrthographicView } from '@deck.gl/core';
import { PathLayer, ScatterplotLayer, SolidPolygonLayer } from '@deck.gl/layers';
import { Ground } from './ground.js';
import { boundsOf, centre, identityOf, placesOf, union } from './places.js';

const MOST = 6000; // notifications on the map
const LIFE = 8000; // ms that one stays
const GLOW = 2500; // ms that a fence stays lit
const TRACK = 30; // places of a track
const GAP = 5000; // ms after which a track begins anew
const TRACKS = 2000;
const NEAR = 6; // pixels between a click and a point
const FRAME = 50; // ms between pictures at least
const WHOLE = 500; // outlines are left out of pictures with more regions than that passing

export class Scene {
  constructor(parent, { onClick, onHover, onView }) {
    this._parent = parent;
    this._onView = onView;
    this.mode = 'plane';
    this.colours = COLOURS.light;
    this.fences = []; // {interface, rings, points, bounds, own, ...}
    this.passing = []; // {id, attributes, shapes, bounds, at, ...}, oldest first
    this.tracks = new Map();
    this._latest = new Map(); // identity: the last notification of it
    this.lit = new Map(); // interface: when
    this.sketch = null;
    this.selected = null;
    this.frozen = false; // while the past is shown nothing fades
    this.extent = null;
    this._dirty = true;
    this._drawn = 0;
    this.frames = 0;
    this._byInterface = new Map();
    this._ground = new Ground(parent);
    this._ground.setColours(groundColours(this.colours));
    this._deck = new Deck({
      parent,
      views: this._views(),
      initialViewState: this._viewState = { target: [0, 0, 0], zoom: 3 },
      controller: { doubleClickZoom: false, keyboard: true },
      pickingRadius: 5,
      useDevicePixels: Math.min(2, devicePixelRatio),
      onViewStateChange: ({ viewState }) => {
        this._viewState = viewState;
        this._onView();
      },
      onAfterRender: () => this._paintGround(),
      onHover: (info) => onHover(info.object ?? (info.viewport && !this.sketch ? this._below(info.viewport, info.x, info.y) : null)),
      getCursor: ({ isDragging }) => (isDragging ? 'grabbing' : this.sketch ? 'crosshair' : 'default'),
      onResize: () => this._onView(),
    });
    this._listen(onClick);
    const turn = () => {
      requestAnimationFrame(turn);
      const now = performance.now();
      const fading = !this.frozen && (this.passing.length > 0 || this.lit.size > 0);
      if (now - this._drawn >= FRAME && (this._dirty || (fading && now - this._drawn >= 4 * FRAME))) this._draw(now);
    };
    requestAnimationFrame(turn);
  }

  /** Clicks are told by where the pointer went down and up, not by how long that took: a busy machine loses none. */
  _listen(onClick) {
    let down = null;
    this._parent.addEventListener('pointerdown', (event) => { down = event.isPrimary ? [event.offsetX, event.offsetY] : null; });
    this._parent.addEventListener('pointerup', (event) => {
      const [x, y] = [event.offsetX, event.offsetY];
      const still = down && Math.hypot(x - down[0], y - down[1]) < 6;
      down = null;
      const viewport = still && this._deck.isInitialized ? this._deck.getViewports()[0] : null;
      if (viewport) onClick(viewport.unproject([x, y]), this._deck.pickObject({ x, y, radius: 5 })?.object ?? this._below(viewport, x, y));
    });
  }

  _views() {
    return this.mode === 'plane' ? new OrthographicView({ id: 'plane', flipY: false }) : new MapView({ id: 'map', repeat: false });
  }

  setMode(mode) {
    if (mode === this.mode) return;
    const bounds = this.visible();
    this.mode = mode;
    this._ground.set(this.fences, mode);
    this.show(bounds ?? this.extent ?? [-10, -10, 10, 10], 0);
  }

  setColours(name) {
    this.colours = COLOURS[name];
    this._ground.setColours(groundColours(this.colours));
    this.touch();
  }

  touch() {
    this._dirty = true;
  }

  /** Move so that bounds are seen. */
  show(bounds, margin = 0.08) {
    const [x1, y1, x2, y2] = bounds;
    const width = this._parent.clientWidth || 800, height = this._parent.clientHeight || 600;
    const w = Math.max(x2 - x1, 1e-6) * (1 + 2 * margin), h = Math.max(y2 - y1, 1e-6) * (1 + 2 * margin);
    const [x, y] = centre(bounds);
    if (this.mode === 'plane') {
      this._viewState = { target: [x, y, 0], zoom: Math.min(24, Math.log2(Math.min(width / w, height / h))), minZoom: -30, maxZoom: 30 };
    } else {
      const stretch = 1 / Math.max(0.05, Math.cos((y * Math.PI) / 180));
      const zoom = Math.log2(Math.min((width * 360) / (w * 512), (height * 360) / (h * stretch * 512)));
      this._viewState = { longitude: x, latitude: Math.max(-85, Math.min(85, y)), zoom: Math.max(0, Math.min(20, zoom)), pitch: 0, bearing: 0 };
    }
    // Both at once: a view of the one kind cannot be drawn with the state of the other.
    this._deck.setProps({ views: this._views(), initialViewState: { ...this._viewState } });
    this._onView();
    this.touch();
  }

  /** The bounds of what is seen. */
  visible() {
    const viewport = this._deck.isInitialized ? this._deck.getViewports()[0] : null;
    if (!viewport) return null;
    const [x1, y1, x2, y2] = viewport.getBounds();
    return [Math.min(x1, x2), Math.min(y1, y2), Math.max(x1, x2), Math.max(y1, y2)];
  }

  /** Where on the screen a place is, for tests and labels. */
  project(place) {
    return this._deck.getViewports()[0].project(place);
  }

  // ---------------------------------------------------------------- what is there

  setFences(fences) {
    this.fences = fences;
    this._byInterface = new Map();
    this.extent = null;
    for (const fence of fences) {
      this._byInterface.set(fence.key, fence);
      this.extent = union(this.extent, fence.bounds);
    }
    this._ground.set(fences, this.mode);
    this.touch();
  }

  light(key) {
    if (this._byInterface.has(key)) {
      this.lit.set(key, performance.now());
      this.touch();
    }
  }

  add(items) {
    const now = performance.now();
    for (const item of items) {
      const { shapes, names } = placesOf(item.notification);
      const bounds = boundsOf(shapes);
      const passing = { id: item.id, publisher: item.publisher, attributes: item.notification, shapes, bounds, names, at: now, receivers: item.receivers };
      this.passing.push(passing);
      if (bounds) {
        this.extent = union(this.extent, bounds);
        this._follow(passing);
      }
    }
    if (this.passing.length > MOST) this.passing.splice(0, this.passing.length - MOST);
    this.touch();
  }

  _follow(passing) {
    const identity = identityOf(passing.attributes);
    if (!identity) return;
    const last = this._latest.get(identity);
    if (last) last.superseded = true;
    this._latest.delete(identity);
    this._latest.set(identity, passing);
    if (this._latest.size > TRACKS) this._latest.delete(this._latest.keys().next().value);
    const follows = last && passing.at - last.at < GAP && this.tracks.get(identity);
    const track = follows || [];
    this.tracks.delete(identity); // to the end: the oldest is the first
    track.push(centre(passing.bounds));
    if (track.length > TRACK) track.shift();
    this.tracks.set(identity, track);
    if (this.tracks.size > TRACKS) this.tracks.delete(this.tracks.keys().next().value);
  }

  clear() {
    this.passing = [];
    this.tracks.clear();
    this._latest.clear();
    this.lit.clear();
    this.touch();
  }

  // ---------------------------------------------------------------- drawing

  _paintGround() {
    const viewport = this._deck?.isInitialized ? this._deck.getViewports()[0] : null;
    if (viewport) this._ground.paint(viewport, { lit: this._litNow(performance.now()), passing: this.passing, tracks: this.tracks, strength: (item) => this._strength(item, performance.now()) });
  }

  _draw(now) {
    this._dirty = false;
    this._drawn = now;
    this.frames++;
    if (!this.frozen) {
      let gone = 0;
      while (gone < this.passing.length && now - this.passing[gone].at > LIFE) gone++;
      if (gone) this.passing.splice(0, gone);
      for (const [key, at] of this.lit) if (now - at > GLOW) this.lit.delete(key);
      for (const [identity, last] of this._latest) {
        if (now - last.at <= 2 * LIFE) break; // oldest first
        this._latest.delete(identity);
        this.tracks.delete(identity);
      }
    }
    const layers = [...this._selectedLayers(), ...this._passingLayers(now), ...this._sketchLayers()];
    const empty = layers.every((layer) => layer.props.data.length === 0);
    if (empty && this._empty) this._paintGround(); // nothing for deck.gl to draw anew
    else this._deck.setProps({ layers }); // the ground follows
    this._empty = empty;
  }

  _litNow(now) {
    const found = [];
    for (const [key, at] of this.lit) {
      const fence = this._byInterface.get(key);
      if (fence) found.push({ fence, strength: this.frozen ? 1 : Math.max(0, 1 - (now - at) / GLOW) });
    }
    return found;
  }

  _selectedLayers() {
    const selected = this.selected ? this.selected.shapes.rings.map((polygon) => ({ polygon })) : [];
    return [new PathLayer({ id: 'selected', data: selected, getPath: (d) => d.polygon[0], getColor: this.colours.selected, widthUnits: 'pixels', getWidth: 3 })];
  }

  /** How strongly a notification is drawn: it fades, and what is known anew steps back. */
  _strength(item, now, before = 0.3) {
    return (this.frozen ? 1 : Math.max(0, 1 - (now - item.at) / LIFE)) ** 2 * (item.superseded ? before : 1);
  }

  _passingLayers(now) {
    const c = this.colours;
    const rings = [], lines = [];
    for (const item of this.passing) {
      for (const polygon of item.shapes.rings) rings.push({ polygon, item });
      for (const line of item.shapes.lines) lines.push({ line, item });
    }
    const latest = rings.slice(-WHOLE);
    const faded = ([r, g, b, a], before = 1) => (d) => [r, g, b, a * this._strength(d.item, now, before)];
    const when = { updateTriggers: { getFillColor: now, getColor: now } };
    return [
      new SolidPolygonLayer({ id: 'regions', data: latest, pickable: true, getPolygon: (d) => d.polygon, getFillColor: faded(c.region, 0), ...when }),
      new PathLayer({ id: 'region-outlines', data: latest, getPath: (d) => d.polygon[0], getColor: faded(c.regionLine, 0.2), widthUnits: 'pixels', getWidth: 1.5, ...when }),
      new PathLayer({ id: 'lines', data: lines, pickable: true, getPath: (d) => d.line, getColor: faded(c.point), widthUnits: 'pixels', getWidth: 2, ...when }),
    ];
  }

  /** What is at a pixel, if deck.gl found nothing there: a point, the latest first, or a fence. */
  _below(viewport, x, y) {
    for (let n = this.passing.length - 1; n >= 0; n--) {
      const item = this.passing[n];
      for (const point of item.shapes.points) {
        const [px, py] = viewport.project(point);
        if (Math.abs(px - x) < NEAR && Math.abs(py - y) < NEAR) return { item };
      }
    }
    const [a, b] = [viewport.unproject([x, y]), viewport.unproject([x + 1, y])];
    const fence = this._ground.at(a, Math.abs(b[0] - a[0]));
    return fence ? { fence } : null;
  }

  _sketchLayers() {
    if (!this.sketch) return [];
    const { ring, points } = this.sketch;
    return [
      ...(ring.length > 2 ? [new SolidPolygonLayer({ id: 'sketch', data: [ring], getPolygon: (d) => d, getFillColor: this.colours.sketch })] : []),
      new PathLayer({ id: 'sketch-line', data: ring.length > 1 ? [[...ring, ring[0]]] : [], getPath: (d) => d, getColor: this.colours.selected, widthUnits: 'pixels', getWidth: 2 }),
      new ScatterplotLayer({ id: 'sketch-points', data: points, getPosition: (d) => d, getFillColor: this.colours.selected, radiusUnits: 'pixels', getRadius: 4 }),
    ];
  }
}

const COLOURS = {
  light: {
    grid: [0, 30, 50, 18], fence: [60, 90, 110, 16], own: [179, 38, 30, 40], outline: [50, 80, 100, 110], lit: [214, 80, 20], selected: [179, 38, 30, 255],
    region: [11, 110, 119, 60], regionLine: [11, 110, 119, 200], point: [11, 110, 119, 230], track: [11, 110, 119, 140], sketch: [179, 38, 30, 50],
  },
  dark: {
    grid: [180, 210, 230, 18], fence: [140, 170, 190, 16], own: [255, 138, 128, 50], outline: [150, 180, 200, 90], lit: [255, 160, 60], selected: [255, 138, 128, 255],
    region: [95, 208, 216, 50], regionLine: [95, 208, 216, 190], point: [95, 208, 216, 235], track: [95, 208, 216, 130], sketch: [255, 138, 128, 60],
  },
};

const css = ([r, g, b, a = 255]) => `rgb(${r} ${g} ${b} / ${a / 255})`;

/** The colours of the ground, as a canvas has them. */
function groundColours({ grid, fence, own, outline, lit, point, track }) {
  const [r, g, b] = outline, [lr, lg, lb] = lit;
  return { grid: css(grid), fence: css(fence), own: css(own), outline: css(outline), small: css([r, g, b, 60]), lit: (strength) => css([lr, lg, lb, 150 * strength]), track: css(track), point: (strength) => css([point[0], point[1], point[2], point[3] * strength]) };
}
