// The subscriptions of the broker, whoever made them, and those of this page.
//
// Numbers of interfaces only grow, so news are asked for behind the last one known; now and then all are asked for
// again, since those that ended are not told of. Who is no admin sees the page's own only.

import { around, boundsOf, drawable } from './places.js';

const NEWS = 2000; // ms between looks for news
const ALL = 60000; // ms between looks at everything

export class Fences {
  constructor(connection, changed) {
    this._connection = connection;
    this._changed = changed;
    this.byInterface = new Map();
    this.own = new Map(); // this page's: id → fence
    this.loading = false;
    this._last = 0;
    this._allAt = 0;
    this._took = 0; // ms that the last look at everything lasted
  }

  start() {
    this.refresh();
    setInterval(() => this.refresh(), NEWS);
  }

  async refresh() {
    if (this.loading || !this._connection.roles.has('admin')) return;
    this.loading = true;
    try {
      const began = performance.now();
      const whole = this._allAt === 0 || began - this._allAt > Math.max(ALL, 20 * this._took); // a large broker is not asked all the time
      const found = whole ? new Map() : this.byInterface;
      let after = whole ? 0 : this._last, news = false;
      do {
        const page = await this._connection.get('/v1/subscriptions', { of: 'broker', after });
        for (const each of page.subscriptions) {
          if (this._isMine(each, page.session)) continue;
          found.set(each.interface, fenceOf(each.interface, each, false));
          this._last = Math.max(this._last, each.interface);
          news = true;
        }
        after = page.next;
        if (news && found.size % 2000 === 0) this._publishNews(found);
      } while (after);
      if (whole) {
        this._allAt = performance.now();
        this._took = this._allAt - began;
      }
      if (news || whole) this._publishNews(found);
    } catch (error) {
      console.warn('subscriptions:', error.message);
    } finally {
      this.loading = false;
    }
  }

  _publishNews(found) {
    this.byInterface = found;
    this._changed();
  }

  /** Whether a subscription is one of this page's: those have fences of their own. */
  _isMine(each, session) {
    if (each.session !== session) return false;
    for (const fence of [...this.own.values(), ...(this.watching ? [this.watching] : [])]) if (fence.subscription === each.subscription) return true;
    return false;
  }

  addOwn(id, filter, shapes, answer) {
    const fence = fenceOf(`own ${id}`, { ...answer, id, client: 'this page', filters: [filter], shapes }, true);
    this.own.set(id, fence);
    this._changed();
    return fence;
  }

  removeOwn(id) {
    this.own.delete(id);
    this._changed();
  }

  all() {
    return [...this.byInterface.values(), ...this.own.values()];
  }

  drawn() {
    return this.all().filter((fence) => fence.bounds);
  }

  /** The names of attributes that regions are asked of. */
  places() {
    const names = new Set(['area', 'position', 'location', 'point', 'geometry', 'at', 'topic']);
    for (const fence of this.byInterface.values()) for (const name of fence.names) names.add(name);
    return [...names];
  }
}

function fenceOf(key, subscription, own) {
  const shapes = { rings: [], lines: [], points: [] };
  const names = new Set();
  for (const each of subscription.shapes ?? []) {
    drawable(each.distance > 0 ? around(each.geometry, each.distance, each.unit) : each.geometry, shapes);
    names.add(each.attribute);
  }
  return { ...subscription, key, own, shapes, names, bounds: boundsOf(shapes), text: subscription.filters.join(' or ') || (subscription.attached ? `attached to ${subscription.attached}` : ''), matches: [] };
}
