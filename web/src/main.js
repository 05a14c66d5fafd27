// The live map: what happens at a broker, by way of its gateway. This module wires the others together.

import { Connection } from './connection.js';
import { Details } from './details.js';
import { byId, count, make } from './dom.js';
import { Fences } from './fences.js';
import { Past } from './past.js';
import { looksLikeDegrees } from './places.js';
import { Scene } from './scene.js';
import { brief, circle, curlOf, filterOf, geometryOf, pythonOf, summary, wktOf } from './writing.js';

const WATCH = 'watch'; // the id of the subscription that feeds the map
const ASK_RECEIVERS = 300; // ms between questions of who got what
const ASKED_AT_ONCE = 256;
const LISTED = 60; // lines of a list
const FITTED = 3; // times that the map moves by itself, as more becomes known

const connection = new Connection();
const scene = new Scene(byId('map'), { onClick: clicked, onHover: hovered, onView: viewed });
const fences = new Fences(connection, fencesChanged);
const details = new Details(connection, fences, { select: (what) => { scene.selected = what; scene.touch(); }, pick: picked });
const past = new Past(connection, scene, () => watch());
const state = { tool: 'look', points: [], fits: 0, watched: '', shown: 0, skipped: 0, dropped: 0, ownNumber: 0, unasked: [], broker: null, url: 'tcp://127.0.0.1:7400' };
window.contradaMap = { scene, fences, state, connection }; // for tests, and for the curious

// -------------------------------------------------------------------- connection

connection.addEventListener('welcome', ({ detail }) => {
  const name = detail.name ? ` as ${detail.name}` : '';
  say(`connected${name}: ${[...connection.roles].join(', ')}`);
  byId('login').close();
  for (const [role, ids] of [['admin', ['tab-subscriptions', 'tab-overlay', 'tab-past']], ['subscribe', ['tab-ask']], ['publish', ['tab-publish']]]) {
    for (const id of ids) byId(id).hidden = !connection.roles.has(role);
  }
  fences.refresh().then(() => watch(true));
});
connection.addEventListener('stranger', () => login(connection.token ? 'That token is not known.' : ''));
connection.addEventListener('refused', ({ detail }) => {
  if (detail.status === 401 || detail.status === 403) login(detail.detail);
  else say(detail.detail, true);
});
connection.addEventListener('gone', () => say('the gateway is gone; trying again …', true));
connection.addEventListener('notifications', ({ detail }) => (detail.id === WATCH ? passed(detail.items) : matched(detail.id, detail.items)));
connection.addEventListener('skipped', ({ detail }) => { if (detail.id === WATCH) state.skipped = detail.total; });
connection.addEventListener('dropped', ({ detail }) => { state.dropped += detail.dropped; });
connection.addEventListener('ended', ({ detail }) => say(`a subscription ended: ${detail.problem.detail}`, true));

function say(text, wrong = false) {
  byId('connection').textContent = text;
  byId('connection').classList.toggle('wrong', wrong);
}

function login(why) {
  byId('login-outcome').textContent = why;
  if (!byId('login').open) byId('login').showModal();
}

byId('login-form').addEventListener('submit', (event) => {
  event.preventDefault();
  connection.enter(byId('token').value.trim()).catch((error) => login(error.message));
});

// -------------------------------------------------------------------- what passes

/** Subscribe to what the map shows: what the form says, or everything. */
async function watch(anew = false) {
  if (!connection.roles.has('subscribe') || past.on) return;
  const typed = byId('watched').value.trim();
  const filter = typed && !(anew && typed === state.watched && state.automatic) ? typed : 'true';
  state.automatic = filter !== typed || (state.automatic && filter === state.watched);
  if (filter === state.watched && connection.subscriptions.has(WATCH)) return;
  try {
    if (connection.subscriptions.has(WATCH)) await connection.unsubscribe(WATCH).catch(() => {});
    const answer = await connection.subscribe(WATCH, { filter, ...view() });
    fences.watching = answer;
    state.watched = filter;
    byId('watched').value = filter;
    byId('watched').removeAttribute('aria-invalid');
  } catch (error) {
    byId('watched').setAttribute('aria-invalid', 'true');
    say(error.message, true);
  }
}

byId('watch').addEventListener('submit', (event) => {
  event.preventDefault();
  state.automatic = false;
  watch();
});
byId('rate').addEventListener('change', viewed);

function view() {
  const bounds = scene?.visible();
  const rate = Math.max(1, Math.min(5000, Number(byId('rate').value) || 400));
  return { rate, ...(bounds && state.fits > 0 ? { bounds } : {}) };
}

let viewing;
function viewed() {
  clearTimeout(viewing);
  viewing = setTimeout(() => {
    scene.touch();
    if (connection.subscriptions.has(WATCH)) connection.view(WATCH, view()).catch(() => {});
  }, 200);
}

function passed(items) {
  if (past.on) return;
  state.shown += items.length;
  scene.add(items);
  if (connection.roles.has('admin')) {
    state.unasked.push(...items.map((item) => item.id));
    if (state.unasked.length > ASKED_AT_ONCE) state.unasked.splice(0, state.unasked.length - ASKED_AT_ONCE);
  }
  fitOnce();
}

/** Who got what was shown: their regions light up. */
setInterval(async () => {
  if (!state.unasked.length || past.on || document.hidden) return;
  const ids = state.unasked.splice(0, ASKED_AT_ONCE);
  try {
    const { receivers } = await connection.ask({ type: 'receivers', notifications: ids });
    const items = new Map(scene.passing.slice(-2000).map((item) => [item.id, item]));
    for (const [id, { interfaces }] of Object.entries(receivers)) {
      for (const number of interfaces) {
        const fence = fences.byInterface.get(number);
        if (!fence) continue;
        scene.light(number);
        remember(fence, items.get(id));
      }
    }
  } catch {
    // the next question will do
  }
}, ASK_RECEIVERS);

function remember(fence, item) {
  if (!item) return;
  fence.matches.push(item);
  if (fence.matches.length > 20) fence.matches.shift();
}

function matched(id, items) {
  const fence = fences.own.get(id);
  if (!fence || past.on) return;
  const known = new Map(scene.passing.slice(-2000).map((item) => [item.id, item]));
  const unseen = items.filter((item) => !known.has(item.id));
  scene.add(unseen);
  for (const item of scene.passing.slice(-unseen.length || scene.passing.length)) known.set(item.id, item);
  for (const item of items) remember(fence, known.get(item.id));
  fence.delivered = (fence.delivered ?? 0) + items.length;
  scene.light(fence.key);
}

// -------------------------------------------------------------------- the map

function fencesChanged() {
  scene.setFences(fences.drawn());
  byId('places').replaceChildren(...fences.places().map((name) => make('option', { value: name })));
  listSubscriptions();
  fitOnce();
}

function fitOnce() {
  if (state.fits >= FITTED || !scene.extent || state.moved) return;
  const extent = JSON.stringify(scene.extent);
  if (extent === state.fitted) return;
  state.fits++;
  state.fitted = extent;
  coordinates();
  scene.show(scene.extent);
}

function coordinates() {
  const wish = byId('coordinates').value;
  scene.setMode(wish === 'auto' ? (looksLikeDegrees(scene.extent) ? 'lonlat' : 'plane') : wish);
}
byId('coordinates').addEventListener('change', coordinates);
byId('fit').addEventListener('click', () => scene.extent && scene.show(scene.extent));
byId('map').addEventListener('pointerdown', () => { state.moved = true; });
byId('map').addEventListener('wheel', () => { state.moved = true; }, { passive: true });

function clicked(place, object) {
  if (state.tool === 'look') {
    if (object?.item) details.notification(object.item);
    else if (object?.fence) details.subscription(object.fence);
    return;
  }
  if (!place) return;
  const at = [place[0], place[1]];
  if (state.tool === 'publish') {
    offerToPublish(at);
    return;
  }
  state.points.push(at);
  sketch();
  if (state.tool === 'circle' && state.points.length === 2) finishDrawing();
}

function hovered(object) {
  if (state.tool !== 'look') return;
  const text = object?.item ? summary(object.item.attributes) : object?.fence ? `${object.fence.client}: ${brief(object.fence.text)}` : '';
  const hint = byId('hint');
  if (hint.textContent !== text.slice(0, 160)) hint.textContent = text.slice(0, 160);
}

// -------------------------------------------------------------------- drawing

const HINTS = {
  look: '', polygon: 'Click the corners; Enter or a double click ends, Escape gives up', circle: 'Click the centre, then the rim',
  publish: 'Click where the notification is',
};

function choose(tool) {
  state.tool = tool;
  state.points = [];
  scene.sketch = tool === 'look' ? null : { ring: [], points: [] };
  scene.touch();
  for (const button of document.querySelectorAll('[data-tool]')) button.setAttribute('aria-pressed', String(button.dataset.tool === tool));
  byId('hint').textContent = HINTS[tool];
  if (tool === 'polygon' || tool === 'circle') showTab('ask');
  if (tool === 'publish') showTab('publish');
}
for (const button of document.querySelectorAll('[data-tool]')) button.addEventListener('click', () => choose(button.dataset.tool));

function ring() {
  if (state.tool !== 'circle') return state.points;
  if (state.points.length < 2) return state.points;
  const [[x, y], [rx, ry]] = state.points;
  const stretch = scene.mode === 'lonlat' ? 1 / Math.max(0.05, Math.cos((y * Math.PI) / 180)) : 1;
  return circle([x, y], Math.hypot((rx - x) / stretch, ry - y), stretch);
}

function sketch() {
  scene.sketch = { ring: ring(), points: state.points };
  scene.touch();
}

function finishDrawing() {
  const drawn = ring();
  if (drawn.length < 3) return;
  byId('region').value = wktOf(drawn);
  choose('look');
  scene.sketch = { ring: drawn, points: [] };
  written();
  byId('conditions').focus();
}
byId('map').addEventListener('dblclick', () => { if (state.tool === 'polygon') finishDrawing(); });

function written() {
  const filter = filterOf(byId('attribute').value.trim() || 'area', byId('relation').value, byId('region').value, byId('conditions').value);
  byId('as-filter').textContent = filter || '…';
  byId('as-python').textContent = filter ? pythonOf(filter, state.url) : '…';
  byId('as-curl').textContent = filter ? curlOf(filter, location.origin, Boolean(connection.token)) : '…';
  return filter;
}
for (const id of ['region', 'attribute', 'relation', 'conditions']) byId(id).addEventListener('input', written);
written();

byId('ask').addEventListener('submit', async (event) => {
  event.preventDefault();
  const filter = written();
  if (!filter) return;
  const id = `page-${++state.ownNumber}`;
  try {
    const answer = await connection.subscribe(id, { filter, rate: 1000 });
    const geometry = geometryOf(byId('region').value);
    fences.addOwn(id, filter, geometry ? [{ attribute: byId('attribute').value, geometry }] : [], answer);
    scene.sketch = null;
    byId('ask-outcome').textContent = `Subscribed: session ${answer.session}, number ${answer.subscription}.`;
    listOwn();
  } catch (error) {
    byId('ask-outcome').textContent = error.message;
  }
});

async function picked(what, fence) {
  if (what !== 'unsubscribe') return;
  await connection.unsubscribe(fence.id).catch(() => {});
  fences.removeOwn(fence.id);
  details.close();
  listOwn();
}

// -------------------------------------------------------------------- publishing

function offerToPublish([x, y]) {
  let document;
  try {
    document = JSON.parse(byId('notification').value);
  } catch {
    document = {};
  }
  document.position = { type: 'Point', coordinates: [Number(x.toPrecision(8)), Number(y.toPrecision(8))] };
  byId('notification').value = JSON.stringify(document, null, 1);
  choose('look');
  showTab('publish');
  byId('publish').querySelector('button').focus();
}

byId('publish').addEventListener('submit', async (event) => {
  event.preventDefault();
  try {
    const answer = await connection.ask({ type: 'publish', notification: JSON.parse(byId('notification').value) });
    byId('publish-outcome').textContent = `Published: ${answer.ids.join(', ')}`;
  } catch (error) {
    byId('publish-outcome').textContent = error.message;
  }
});

// -------------------------------------------------------------------- lists

function list(into, rows) {
  const focused = document.activeElement?.closest?.('li')?.dataset.key;
  into.replaceChildren(...rows.map(({ key, text, lit, act }) => make('li', { 'data-key': key, class: lit ? 'lit' : '' }, make('button', { type: 'button', click: act }, text))));
  if (focused && into.contains(document.activeElement) === false) into.querySelector(`li[data-key="${CSS.escape(focused)}"] button`)?.focus();
}

function listPassing() {
  const latest = scene.passing.slice(-LISTED).reverse();
  list(byId('passing'), latest.map((item) => ({ key: item.id, text: summary(item.attributes), act: () => details.notification(item) })));
}

function listSubscriptions() {
  const wanted = byId('search').value.toLowerCase();
  const all = fences.all();
  const found = wanted ? all.filter((fence) => `${fence.client} ${fence.text}`.toLowerCase().includes(wanted)) : all;
  byId('subscription-count').textContent = `${count(found.length)} of ${count(all.length)}${fences.loading ? ', loading …' : ''}`;
  if (byId('page-subscriptions').hidden) return;
  list(byId('subscriptions'), found.slice(0, 200).map((fence) => ({ key: String(fence.key), text: `${fence.client}: ${brief(fence.text)}`, lit: scene.lit.has(fence.key), act: () => details.subscription(fence) })));
}
byId('search').addEventListener('input', listSubscriptions);

function listOwn() {
  list(byId('own'), [...fences.own.values()].map((fence) => ({ key: fence.key, text: `${fence.delivered ?? 0} × ${brief(fence.text)}`, lit: scene.lit.has(fence.key), act: () => details.subscription(fence) })));
}

// -------------------------------------------------------------------- status and overlay

let before = { shown: 0, at: performance.now() };
setInterval(async () => {
  const now = performance.now();
  byId('f-shown').textContent = `${count((1000 * (state.shown - before.shown)) / (now - before.at))}/s`;
  before = { shown: state.shown, at: now };
  byId('f-skipped').textContent = count(state.skipped);
  if (!past.on && !byId('page-live').hidden && !byId('passing').contains(document.activeElement)) listPassing();
  if (!byId('page-ask').hidden && !byId('own').contains(document.activeElement)) listOwn();
  if (!connection.roles.has('admin') || document.hidden) {
    byId('f-dropped').textContent = count(state.dropped);
    return;
  }
  try {
    const { broker } = await connection.get('/v1/status');
    state.broker = broker;
    byId('f-published').textContent = `${count(broker.rates.published)}/s`;
    byId('f-delivered').textContent = `${count(broker.rates.delivered)}/s`;
    byId('f-queued').textContent = count(broker.queued);
    byId('f-dropped').textContent = count(broker.totals.dropped);
    if (!byId('page-overlay').hidden) drawOverlay(broker);
  } catch {
    // the connection says what is wrong
  }
}, 1000);

function drawOverlay({ broker, overlay, clients }) {
  const links = new Map(overlay.links.map((link) => [link.neighbour, link]));
  const brokers = new Map(overlay.brokers.map((each) => [each.broker, each]));
  const seen = new Set();
  const branch = (id) => {
    seen.add(id);
    const children = (brokers.get(id)?.tree ?? []).filter((next) => !seen.has(next));
    const link = links.get(id);
    const told = link ? ` – ${count(link.shown)} of ${count(link.wanted)} filters told, covering saved ${count(link.saved)}; ${count(link.forwarded)} forwarded, ${count(link.queued)} queued, ${count(link.lost)} lost` : '';
    return make('li', {}, make('strong', {}, id), make('span', { class: 'small' }, id === broker ? ' (this one)' : told), children.length ? make('ul', {}, ...children.map(branch)) : null);
  };
  const others = overlay.brokers.filter((each) => !each.reachable).map((each) => each.broker);
  const row = (c) => make('tr', {}, make('td', {}, c.name || c.publisher), ...[c.subscriptions, c.published, c.delivered, c.queued, c.dropped].map((n) => make('td', { class: 'number' }, count(n))));
  byId('overlay').replaceChildren(
    make('h2', {}, 'Brokers'), make('div', { class: 'tree' }, make('ul', {}, branch(broker))),
    others.length ? make('p', {}, `out of reach: ${others.join(', ')}`) : '',
    make('h2', {}, 'Clients'),
    make('table', {}, make('thead', {}, make('tr', {}, ...['client', 'subs', 'published', 'delivered', 'queued', 'dropped'].map((name) => make('th', { scope: 'col' }, name)))), make('tbody', {}, ...clients.slice(0, 50).map(row))),
  );
}

// -------------------------------------------------------------------- tabs, keys, colours

const tabs = [...document.querySelectorAll('[role="tab"]')];
function showTab(name) {
  if (details.open) details.close();
  for (const tab of tabs) {
    const chosen = tab.id === `tab-${name}`;
    tab.setAttribute('aria-selected', String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    byId(tab.getAttribute('aria-controls')).hidden = !chosen;
  }
  if (name === 'past') past.enter();
  if (name === 'subscriptions') listSubscriptions();
  if (name === 'overlay' && state.broker) drawOverlay(state.broker);
}
for (const tab of tabs) tab.addEventListener('click', () => showTab(tab.id.slice(4)));
byId('tabs').addEventListener('keydown', (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const there = tabs.filter((tab) => !tab.hidden);
  const next = there[(there.indexOf(document.activeElement) + step + there.length) % there.length];
  next.focus();
  showTab(next.id.slice(4));
});

document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') {
    if (details.open) details.close();
    else choose('look');
    return;
  }
  const typing = event.target.closest?.('input, textarea, select, dialog');
  if (event.key === 'Enter' && state.tool === 'polygon' && !typing) {
    event.preventDefault(); // it would press the button of the form that gets the focus
    finishDrawing();
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const tool = { l: 'look', p: 'polygon', c: 'circle', u: 'publish' }[event.key.toLowerCase()];
  if (tool) choose(tool);
  if (event.key.toLowerCase() === 'f' && scene.extent) scene.show(scene.extent);
  if (event.key === '/') { event.preventDefault(); showTab('live'); byId('watched').focus(); }
});
byId('map').addEventListener('keydown', (event) => {
  const bounds = scene.visible();
  if (!bounds) return;
  const [x1, y1, x2, y2] = bounds, w = x2 - x1, h = y2 - y1;
  const move = { ArrowLeft: [-0.2, 0], ArrowRight: [0.2, 0], ArrowUp: [0, 0.2], ArrowDown: [0, -0.2] }[event.key];
  const grow = { '+': -0.2, '=': -0.2, '-': 0.3 }[event.key];
  if (!move && grow === undefined) return;
  event.preventDefault();
  state.moved = true;
  const [dx, dy] = move ? [move[0] * w, move[1] * h] : [0, 0], g = grow ?? 0;
  scene.show([x1 + dx - g * w / 2, y1 + dy - g * h / 2, x2 + dx + g * w / 2, y2 + dy + g * h / 2], 0);
});

function colours(name) {
  document.documentElement.dataset.theme = name;
  byId('theme').setAttribute('aria-pressed', String(name === 'dark'));
  scene.setColours(name);
}
byId('theme').addEventListener('click', () => {
  const name = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
  localStorage.setItem('contrada-theme', name);
  colours(name);
});
colours(localStorage.getItem('contrada-theme') ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'));

connection.open();
fences.start();
