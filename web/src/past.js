// Looking back: a slider over the recording that the gateway was given.

import { byId } from './dom.js';

const STEPS = 1000;
const MOST = 3000; // notifications of one moment's window

export class Past {
  constructor(connection, scene, leave) {
    this._connection = connection;
    this._scene = scene;
    this._leave = leave;
    this.on = false;
    byId('moment').addEventListener('input', () => this._moved());
    byId('past-window').addEventListener('change', () => this._moved());
    byId('play').addEventListener('click', () => this._play());
    byId('now').addEventListener('click', () => this.leave());
  }

  async enter() {
    try {
      const span = await this._connection.get('/v1/recording');
      if (!span.recording) throw new Error('The gateway reads no recording. Start the broker with --record DIR and the gateway with --recording DIR.');
      if (!span.to) throw new Error('Nothing is recorded yet.');
      this._span = span;
      byId('past').hidden = false;
      byId('past-note').textContent = '';
      this._text();
    } catch (error) {
      byId('past').hidden = true;
      byId('past-note').textContent = error.message;
    }
  }

  get moment() {
    const { from, to } = this._span;
    return Math.round(from + ((to - from) * byId('moment').value) / STEPS);
  }

  _text() {
    const text = new Date(this.moment / 1000).toISOString().replace('T', ' ').replace('Z', ' UTC');
    byId('moment-text').textContent = text;
    byId('moment').setAttribute('aria-valuetext', text);
  }

  _moved() {
    this.on = true;
    this._scene.frozen = true;
    this._text();
    clearTimeout(this._soon);
    this._soon = setTimeout(() => this._load(), 80);
  }

  async _load() {
    const to = this.moment + 1, from = Math.max(0, to - byId('past-window').value * 1e6);
    const bounds = this._scene.visible();
    try {
      const found = await this._connection.get('/v1/recording/notifications', { from: Math.round(from), to, limit: MOST, ...(bounds ? { bounds: bounds.join(',') } : {}) });
      if (!this.on) return;
      this._scene.clear();
      this._scene.add(found.items);
      const more = found.next ? ', and more' : '';
      byId('past-note').textContent = `${found.items.length} notifications${more}`;
    } catch (error) {
      byId('past-note').textContent = error.message;
    }
  }

  _play() {
    const playing = byId('play').getAttribute('aria-pressed') !== 'true';
    byId('play').setAttribute('aria-pressed', String(playing));
    clearInterval(this._clock);
    if (!playing) return;
    if (Number(byId('moment').value) >= STEPS) byId('moment').value = 0;
    this._clock = setInterval(() => {
      const { from, to } = this._span;
      const step = Math.max(1, (STEPS * 0.25e6) / Math.max(1, to - from)); // a second in a second, or faster where steps are longer
      byId('moment').value = Math.min(STEPS, Number(byId('moment').value) + step);
      this._moved();
      if (Number(byId('moment').value) >= STEPS) this._play();
    }, 250);
  }

  leave() {
    clearInterval(this._clock);
    byId('play').setAttribute('aria-pressed', 'false');
    this.on = false;
    this._scene.frozen = false;
    this._scene.clear();
    byId('past-note').textContent = '';
    this._leave();
  }
}
