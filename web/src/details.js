// What is told of one notification or one subscription when it is clicked.

import { byId, count, make } from './dom.js';
import { touching } from './places.js';
import { brief, summary, valueText } from './writing.js';

const EXPLAINED = 6; // of those that did not get it, at first and with each "more"

export class Details {
  constructor(connection, fences, { select, pick }) {
    this._connection = connection;
    this._fences = fences;
    this._select = select;
    this._pick = pick;
    byId('close-details').addEventListener('click', () => this.close());
  }

  get open() {
    return !byId('details').hidden;
  }

  close() {
    byId('details').hidden = true;
    this._select(null);
    this._opener?.focus?.();
  }

  _show(...children) {
    if (!this.open) this._opener = document.activeElement;
    byId('details-body').replaceChildren(...children);
    byId('details').hidden = false;
    byId('details').focus();
  }

  // ---------------------------------------------------------------- a notification

  async notification(item) {
    this._select(item);
    const rows = Object.entries(item.attributes).map(([name, value]) => make('tr', {}, make('th', { scope: 'row' }, name), make('td', {}, valueText(value))));
    const got = make('div', { id: 'received' }, make('p', { class: 'small' }, 'asking …'));
    const missed = make('div', { id: 'missed' });
    this._show(
      make('h2', {}, `Notification ${item.id}`),
      make('p', { class: 'small' }, item.publisher ? `from ${item.publisher}` : ''),
      make('table', {}, make('tbody', {}, ...rows)),
      make('h2', {}, 'Received by'), got,
      make('h2', {}, 'Not received by'), missed,
    );
    const asked = (this._asked = item.id);
    try {
      const own = [...this._fences.own.values()];
      const receivers = this._connection.roles.has('admin') ? await this._receivers(item.id) : null;
      if (this._asked !== asked) return;
      const all = this._fences.all();
      const matched = all.filter((fence) => (fence.own ? fence.matches.some((m) => m.id === item.id) : receivers?.has(fence.interface)));
      got.replaceChildren(matched.length ? make('ul', { class: 'list' }, ...matched.slice(0, 100).map((fence) => this._line(fence, 'yes'))) : make('p', {}, receivers || own.length ? 'nobody that is known here' : 'only an admin sees who'));
      const taken = new Set(matched);
      const others = all.filter((fence) => !taken.has(fence));
      const near = (fence) => (item.names.some((name) => fence.names.has(name)) ? 0 : 2) + (item.bounds && fence.bounds && touching(item.bounds, fence.bounds) ? 0 : 1);
      others.sort((a, b) => near(a) - near(b));
      await this._explainSome(item, others, missed, asked);
    } catch (error) {
      got.replaceChildren(make('p', { class: 'wrong' }, error.message));
    }
  }

  async _receivers(id) {
    const { receivers } = await this._connection.get('/v1/receivers', { notification: id });
    if (!receivers[id]) throw new Error('the broker does not remember it any more');
    return new Set(receivers[id].interfaces);
  }

  async _explainSome(item, others, into, asked) {
    for (const fence of others.splice(0, EXPLAINED)) {
      const entry = make('div', {}, make('ul', { class: 'list' }, this._line(fence, 'no')));
      into.append(entry);
      try {
        const explanation = await this._explain(item.id, fence);
        if (this._asked !== asked) return;
        entry.append(...verdicts(explanation));
      } catch (error) {
        entry.append(make('p', { class: 'verdict small' }, error.message));
      }
    }
    if (others.length) {
      const more = make('button', { type: 'button', click: () => { more.remove(); this._explainSome(item, others, into, asked); } }, `${count(others.length)} more …`);
      into.append(more);
    }
  }

  async _explain(id, fence) {
    if (fence.own) return (await this._connection.ask({ type: 'explain', notification: id, id: fence.id })).explanation;
    return this._connection.get('/v1/explain', { notification: id, subscription: fence.subscription, session: fence.session });
  }

  _line(fence, outcome) {
    return make('li', {}, make('button', { type: 'button', class: outcome, click: () => this.subscription(fence) }, `${fence.client}: ${brief(fence.text)}`));
  }

  // ---------------------------------------------------------------- a subscription

  subscription(fence) {
    this._select(fence);
    this._asked = null;
    const matches = fence.matches.slice(-12).reverse();
    const row = (name, value) => make('tr', {}, make('th', { scope: 'row' }, name), make('td', {}, String(value)));
    this._show(
      make('h2', {}, `Subscription of ${fence.client}`),
      make('pre', { tabindex: '0' }, fence.text || '(filters too large to show)'),
      make('table', {}, make('tbody', {}, row('session', fence.session), row('number', fence.subscription), row('policy', fence.policy ?? 'drop-oldest'), row('delivered', count(fence.delivered)), row('queued', count(fence.queued)), row('dropped', count(fence.dropped)))),
      make('h2', {}, 'Latest matches seen here'),
      matches.length ? make('ul', { class: 'list' }, ...matches.map((item) => make('li', {}, make('button', { type: 'button', click: () => this.notification(item) }, summary(item.attributes))))) : make('p', {}, 'none yet'),
      fence.own ? make('button', { type: 'button', click: () => this._pick('unsubscribe', fence) }, 'Unsubscribe') : null,
    );
  }
}

/** Why: the constraints of each filter, those that said no first. */
function verdicts(explanation) {
  if (!explanation.filters?.length) return [make('p', { class: 'verdict' }, explanation.why ?? explanation.fate)];
  return explanation.filters.slice(0, 5).flatMap((filter) =>
    [...(filter.verdicts ?? [])].sort((a, b) => a.held - b.held).map((each) => make('p', { class: `verdict ${each.held ? 'yes' : 'no'}` }, make('code', { title: each.constraint }, brief(each.constraint)), each.held ? '' : `: ${each.why}`)),
  );
}
