// What there is most of, on a plain canvas: a grid, the regions of subscriptions, those of them that matched just now, and
// the points and tracks of what passes. Regions of notifications are deck.gl's, above it.
//
// The regions are one picture, drawn by another thread (`painter.js`) for a window that is larger than what is seen. While
// the map moves the picture moves with it, and a new one is asked for when the view leaves it or has come to rest at
// another scale. So a picture on the screen costs the same for ten regions and for fifty thousand.

import { flatY, ownerAt, pack } from './packed.js';

const MARGIN = 0.35; // of the width and height, around what is seen
const REST = 150; // ms
const LIT = 400; // regions that are lit at a time: the latest
const LINES = 60;
const SEGMENTS = 6000; // of all tracks together: where there are many, each shows less of its past
const SHADES = 8;
const ROUND = 3000; // points, beyond which they are squares

export class Ground {
  constructor(parent) {
    this._parent = parent;
    this._canvas = document.createElement('canvas');
    this._canvas.className = 'ground';
    this._canvas.setAttribute('aria-hidden', 'true');
    parent.append(this._canvas);
    this._painter = new Worker('painter.js', { type: 'module' });
    this._painter.onmessage = ({ data }) => this._arrived(data);
    this._fences = [];
    this._packed = null;
    this._picture = null;
    this._asked = null; // what is being drawn
    this._stale = true; // whether the picture shows other regions or colours than there are
    this._viewport = null;
    this._what = null;
    this.pictures = 0;
    this.mode = 'plane';
  }

  set(fences, mode) {
    this._fences = fences;
    this.mode = mode;
    this._packed = pack(fences, mode);
    this._painter.postMessage({ packed: this._packed });
    this._stale = true;
    this._ask();
  }

  setColours(colours) {
    this._colours = colours;
    this._stale = true;
    this._ask();
  }

  /** The fence at a place, if any; `pixel` is how much of the map one is. */
  at(place, pixel) {
    if (!this._packed) return null;
    const owner = ownerAt(this._packed, place[0], flatY(place[1], this.mode), 5 * pixel);
    return owner < 0 ? null : this._fences[owner];
  }

  /** Paint for a viewport of deck.gl: after each of its pictures. */
  paint(viewport, what) {
    this._viewport = viewport;
    this._what = what;
    const ratio = Math.min(2, devicePixelRatio), { width, height } = viewport, canvas = this._canvas;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    const context = canvas.getContext('2d', { willReadFrequently: true }); // drawn by the processor: as quick with a graphics processor, and much quicker without
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const flat = this._flat(viewport);
    this._grid(context, flat, width, height);
    if (this._picture) {
      const [x1, y1, x2, y2] = this._picture.window;
      context.drawImage(this._picture.picture, flat.x(x1), flat.y(y2), flat.x(x2) - flat.x(x1), flat.y(y1) - flat.y(y2));
    }
    this._light(context, flat, what.lit);
    this._track(context, flat, what.tracks);
    this._dot(context, flat, what);
    this._ask();
  }

  /** From the map as it is drawn (y by `flatY`) to pixels, and what is seen of it. */
  _flat(viewport) {
    const { width, height } = viewport, [left, bottom] = viewport.unproject([0, height]), [right, top] = viewport.unproject([width, 0]);
    const low = flatY(bottom, this.mode), high = flatY(top, this.mode);
    const sx = width / (right - left || 1), sy = height / (high - low || 1);
    return { x: (x) => (x - left) * sx, y: (y) => (high - y) * sy, window: [left, low, right, high], scale: sx };
  }

  _grid(context, flat, width, height) {
    const [x1, y1, x2, y2] = flat.window, step = 10 ** Math.floor(Math.log10(Math.max(x2 - x1, 1e-9) / 2));
    context.strokeStyle = this._colours.grid;
    context.lineWidth = 1;
    context.beginPath();
    for (let x = Math.ceil(x1 / step) * step, n = 0; x <= x2 && n < LINES; x += step, n++) {
      context.moveTo(flat.x(x), 0);
      context.lineTo(flat.x(x), height);
    }
    for (let y = Math.ceil(y1 / step) * step, n = 0; y <= y2 && n < LINES; y += step, n++) {
      const at = flat.y(this.mode === 'lonlat' ? flatY(y, 'lonlat') : y);
      context.moveTo(0, at);
      context.lineTo(width, at);
    }
    context.stroke();
  }

  _light(context, flat, lit) {
    for (const { fence, strength } of lit.slice(-LIT)) {
      context.fillStyle = this._colours.lit(strength);
      for (const polygon of fence.shapes.rings) {
        context.beginPath();
        for (const ring of polygon) ring.forEach(([x, y], i) => (i ? context.lineTo(flat.x(x), flat.y(flatY(y, this.mode))) : context.moveTo(flat.x(x), flat.y(flatY(y, this.mode)))));
        context.fill('evenodd');
      }
    }
  }

  _track(context, flat, tracks) {
    const most = Math.max(1, Math.floor(SEGMENTS / Math.max(1, tracks.size)));
    context.strokeStyle = this._colours.track;
    context.lineWidth = 1.5;
    context.beginPath();
    for (const track of tracks.values()) {
      for (let i = Math.max(0, track.length - 1 - most), first = i; i < track.length; i++) {
        const x = flat.x(track[i][0]), y = flat.y(flatY(track[i][1], this.mode));
        if (i === first) context.moveTo(x, y);
        else context.lineTo(x, y);
      }
    }
    context.stroke();
  }

  /** Points in a few strengths: one fill for each, and not one for each point. */
  _dot(context, flat, { passing, strength }) {
    const shades = Array.from({ length: SHADES }, () => []);
    let count = 0;
    for (const item of passing) {
      if (!item.shapes.points.length) continue;
      const shade = shades[Math.min(SHADES - 1, Math.floor(strength(item) * SHADES))];
      for (const point of item.shapes.points) {
        shade.push(flat.x(point[0]), flat.y(flatY(point[1], this.mode)));
        count++;
      }
    }
    shades.forEach((shade, number) => {
      if (!shade.length) return;
      context.fillStyle = this._colours.point((number + 1) / SHADES);
      if (count > ROUND) {
        for (let i = 0; i < shade.length; i += 2) context.fillRect(shade[i] - 2, shade[i + 1] - 2, 4, 4);
        return;
      }
      context.beginPath();
      for (let i = 0; i < shade.length; i += 2) {
        context.moveTo(shade[i] + 3, shade[i + 1]);
        context.arc(shade[i], shade[i + 1], 3, 0, 2 * Math.PI);
      }
      context.fill();
    });
  }

  /** Have a new picture drawn, if that would be another one and none is being drawn. */
  _ask() {
    if (!this._viewport || !this._packed || !this._colours || this._asked) return;
    const flat = this._flat(this._viewport), { width, height } = this._viewport;
    const picture = this._picture, seen = flat.window;
    if (picture && !this._stale) {
      const [x1, y1, x2, y2] = picture.window;
      const holds = x1 <= seen[0] && y1 <= seen[1] && x2 >= seen[2] && y2 >= seen[3];
      const sharp = Math.abs(Math.log2(flat.scale / picture.scale)) < 0.02;
      if (holds && sharp) return;
      if (holds || Math.abs(Math.log2(flat.scale / picture.scale)) < 1) { // it will do until the map has come to rest
        clearTimeout(this._soon);
        if (!this._resting) {
          this._soon = setTimeout(() => { this._resting = true; this._ask(); this._resting = false; }, REST);
          return;
        }
      }
    }
    const w = seen[2] - seen[0], h = seen[3] - seen[1];
    const window = [seen[0] - MARGIN * w, seen[1] - MARGIN * h, seen[2] + MARGIN * w, seen[3] + MARGIN * h];
    const ratio = Math.min(2, devicePixelRatio) * (1 + 2 * MARGIN);
    this._asked = { scale: flat.scale };
    this._stale = false;
    const { fence, own, outline, small } = this._colours;
    this._painter.postMessage({ draw: { window, width: Math.max(1, Math.round(width * ratio)), height: Math.max(1, Math.round(height * ratio)), colours: { fence, own, outline, small } } });
  }

  _arrived({ picture, window }) {
    this._picture?.picture.close();
    this._picture = { picture, window, scale: this._asked.scale };
    this._asked = null;
    this.pictures++;
    if (this._viewport) this.paint(this._viewport, this._what);
  }
}
