// Uses the live map in a real Chromium as people do, and asserts what they should find.
//
//   node scenario.mjs URL CHROMIUM OUT WHAT...
//
// URL is a gateway in front of a running `contrada live`; OUT gets screenshots. Exits with 1 when something is wrong.
import assert from 'node:assert/strict';
import path from 'node:path';
import { chromium } from 'playwright-core';

const [url, executablePath, out, ...wanted] = process.argv.slice(2);
const kept = Boolean(process.env.CONTRADA_SCREENSHOTS); // pictures to be looked at: else half the pixels, and no time for tracks to grow
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--use-angle=swiftshader', '--enable-unsafe-swiftshader'] });

/** A page, and all that it asked for and complained of. */
async function open(options = {}, token = '') {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, deviceScaleFactor: kept ? 1 : 0.5, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60000);
  const seen = { requests: [], faults: [] };
  page.on('request', (request) => seen.requests.push(request.url()));
  page.on('websocket', (socket) => seen.requests.push(socket.url()));
  page.on('pageerror', (error) => seen.faults.push(error.message));
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type()) && !/GPU stall|GL Driver|uniform block|WebGL/i.test(message.text())) seen.faults.push(message.text()); });
  const answer = await page.goto(url);
  if (token) {
    await page.locator('#login[open]').waitFor();
    await page.fill('#token', token);
    await page.keyboard.press('Enter');
  }
  return { page, seen, answer };
}

const alive = (page) => page.waitForFunction(() => window.contradaMap?.scene.passing.length > 20);
const shot = (page, name) => page.screenshot({ path: path.join(out, `${name}.png`) });
async function checkManners({ page, seen, answer }) {
  const { host } = new URL(url);
  for (const asked of seen.requests) if (!asked.startsWith('data:')) assert.equal(new URL(asked).host, host, `a request to elsewhere: ${asked}`);
  assert.deepEqual(seen.faults, [], 'the page complained');
  if (answer) assert.match(answer.headers()['content-security-policy'], /default-src 'none'.*script-src 'self'/);
  await page.context().close();
}

const scenarios = {
  async watch() {
    const opened = await open();
    const { page } = opened;
    await alive(page);
    await page.waitForFunction(() => contradaMap.fences.byInterface.size > 100 && contradaMap.scene.lit.size > 0);
    assert.equal(await page.evaluate(() => contradaMap.scene.mode), 'lonlat');
    await page.waitForFunction(() => /\d\/s/.test(document.getElementById('f-published').textContent));
    await page.waitForFunction(() => contradaMap.scene.tracks.size > 10);
    // a notification: who got it, who did not, and which constraint said no
    await page.locator('#passing button', { hasText: 'vehicle' }).first().click();
    await page.locator('#missed .verdict.no').first().waitFor();
    const why = await page.locator('#missed .verdict.no').first().textContent();
    assert.match(why, /(attribute|satisfy|disjoint|is |not )/);
    await shot(page, 'explained');
    await page.keyboard.press('Escape');
    assert.ok(await page.locator('#details').isHidden());
    // a subscription, by a click on the map
    await page.evaluate(() => { const f = contradaMap.fences.drawn().find((each) => each.shapes.rings.length); window.picked = f; contradaMap.scene.show(f.bounds, 1); });
    await page.waitForTimeout(1500); // the map has moved, and a picture of where to click was drawn
    const box = await page.locator('#map').boundingBox();
    let found = false;
    for (const [dx, dy] of [[0, 0], [9, 7], [-12, 5], [5, -14], [20, 20], [-25, -20]]) {
      await page.mouse.click(box.x + box.width / 2 + dx, box.y + box.height / 2 + dy);
      await page.waitForTimeout(700);
      if (await page.locator('#details').isVisible()) { found = true; break; }
    }
    assert.ok(found, 'a click on a region tells of it');
    await page.keyboard.press('Escape');
    // all subscriptions, found by their text, and the overlay
    await page.click('#tab-subscriptions');
    await page.fill('#search', 'dispatch');
    await page.waitForFunction(() => /^20 of /.test(document.getElementById('subscription-count').textContent));
    await page.locator('#subscriptions button').first().click();
    assert.match(await page.locator('#details pre').textContent(), /position inside POLYGON/);
    await page.keyboard.press('Escape');
    await page.click('#tab-overlay');
    await page.locator('#overlay table tbody tr').first().waitFor();
    assert.match(await page.locator('#overlay').textContent(), /this one/);
    await page.click('#tab-live');
    await page.click('#fit');
    if (kept) await page.waitForTimeout(6000); // tracks and storms to look at
    await shot(page, 'live-map');
    await checkManners(opened);
  },

  async draw() {
    const opened = await open();
    const { page } = opened;
    await alive(page);
    const box = await page.locator('#map').boundingBox();
    const at = (x, y) => page.mouse.click(box.x + box.width * x, box.y + box.height * y);
    await page.keyboard.press('p');
    assert.equal(await page.locator('[data-tool=polygon]').getAttribute('aria-pressed'), 'true');
    for (const [x, y] of [[0.3, 0.2], [0.8, 0.2], [0.8, 0.8], [0.3, 0.8]]) { await at(x, y); await page.waitForTimeout(350); } // no double clicks
    await page.waitForFunction(() => contradaMap.state.points.length === 4);
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.getElementById('region').value.startsWith('POLYGON(('));
    assert.equal(await page.evaluate(() => contradaMap.fences.own.size), 0);
    await page.fill('#attribute', 'position');
    await page.selectOption('#relation', 'inside');
    await page.fill('#conditions', 'speed >= 0');
    const filter = await page.locator('#as-filter').textContent();
    assert.match(filter, /^position inside POLYGON\(\(.*\)\) and speed >= 0$/);
    assert.match(await page.locator('#as-python').textContent(), /client\.subscribe\("position inside/);
    assert.match(await page.locator('#as-curl').textContent(), /^curl -N --get http.*--data-urlencode 'filter=position inside/);
    await page.click('#subscribe');
    await page.waitForFunction(() => [...contradaMap.fences.own.values()].some((fence) => fence.matches.length > 3));
    await page.waitForFunction(() => [...contradaMap.scene.lit.keys()].some((key) => String(key).startsWith('own')));
    await shot(page, 'drawn');
    await page.locator('#own button').first().click();
    assert.ok((await page.locator('#details .list button').count()) > 0, 'its latest matches');
    await page.locator('#details button', { hasText: 'Unsubscribe' }).click();
    await page.waitForFunction(() => contradaMap.fences.own.size === 0);
    await page.click('[data-tool=circle]');
    await at(0.5, 0.5);
    await page.waitForTimeout(350);
    await at(0.6, 0.5);
    await page.waitForFunction(() => (document.getElementById('region').value.match(/,/g) ?? []).length === 48);
    // what is wrong is said
    await page.fill('#conditions', 'speed >');
    await page.click('#subscribe');
    await page.waitForFunction(() => document.getElementById('ask-outcome').textContent.includes('expected'));
    // publishing by a click
    await page.click('[data-tool=publish]');
    await at(0.5, 0.4);
    await page.waitForFunction(() => document.getElementById('notification').value.includes('Point'));
    await page.click('#publish button');
    await page.waitForFunction(() => document.getElementById('publish-outcome').textContent.startsWith('Published: '));
    await page.fill('#notification', '{"wrong": [}');
    await page.click('#publish button');
    await page.waitForFunction(() => /JSON/.test(document.getElementById('publish-outcome').textContent));
    await checkManners(opened);
  },

  async past() {
    const opened = await open();
    const { page } = opened;
    await alive(page);
    await page.click('#tab-past');
    await page.locator('#moment').waitFor();
    await page.locator('#moment').focus();
    for (let i = 0; i < 4; i++) await page.keyboard.press('PageDown');
    await page.waitForFunction(() => contradaMap.scene.frozen && /^\d+ notifications/.test(document.getElementById('past-note').textContent) && contradaMap.scene.passing.length > 0);
    assert.match(await page.locator('#moment').getAttribute('aria-valuetext'), /UTC$/);
    await shot(page, 'past');
    await page.click('#now');
    await page.waitForFunction(() => !contradaMap.scene.frozen && contradaMap.scene.passing.length > 0);
    await checkManners(opened);
  },

  async keyboard() {
    const opened = await open({ colorScheme: 'dark', viewport: { width: 390, height: 800 } });
    const { page } = opened;
    await alive(page);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'no sideways scrolling on a phone');
    if (kept) await page.waitForTimeout(3000);
    await shot(page, 'phone-dark');
    await page.click('#theme');
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'light');
    await page.focus('#tab-live');
    await page.keyboard.press('ArrowRight');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'tab-subscriptions');
    assert.ok(await page.locator('#page-subscriptions').isVisible());
    await page.focus('#map');
    const before = await page.evaluate(() => contradaMap.scene.visible());
    await page.keyboard.press('ArrowRight');
    await page.waitForFunction((x) => contradaMap.scene.visible()[0] > x, before[0]);
    await page.keyboard.press('+');
    await page.waitForFunction((w) => { const b = contradaMap.scene.visible(); return b[2] - b[0] < w; }, before[2] - before[0]);
    await page.keyboard.press('/');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'watched');
    const unnamed = await page.evaluate(() => [...document.querySelectorAll('button, input, select, textarea, [role]')]
      .filter((e) => !(e.getAttribute('aria-label') || e.labels?.length || e.textContent.trim() || e.getAttribute('aria-labelledby') || ['status', 'alert'].includes(e.getAttribute('role'))))
      .map((e) => e.outerHTML.slice(0, 80)));
    assert.deepEqual(unnamed, [], 'everything has a name for a screen reader');
    await checkManners(opened);
  },

  async overlay() {
    const opened = await open();
    const { page } = opened;
    await page.waitForFunction(() => document.getElementById('connection').textContent.startsWith('connected'));
    await page.click('#tab-overlay');
    await page.waitForFunction(() => /covering saved [1-9]/.test(document.getElementById('overlay').textContent));
    const tree = await page.locator('#overlay .tree').textContent();
    assert.match(tree, /\(this one\).*1 of [34] filters told, covering saved [23]/);
    await shot(page, 'overlay');
    await checkManners(opened);
  },

  async roles() {
    const token = process.env.CONTRADA_TOKEN;
    const opened = await open({}, token);
    const { page } = opened;
    await page.waitForFunction(() => document.getElementById('connection').textContent.startsWith('connected as reader'));
    for (const tab of ['subscriptions', 'overlay', 'past', 'publish']) assert.ok(await page.locator(`#tab-${tab}`).isHidden(), tab);
    assert.ok(await page.locator('#tab-ask').isVisible());
    await alive(page);
    assert.equal(await page.evaluate(() => contradaMap.fences.byInterface.size), 0, 'others are not seen');
    await checkManners(opened);
  },

  async crowd() {
    const opened = await open();
    const { page } = opened;
    const fences = Number(process.env.CONTRADA_FENCES), seconds = Number(process.env.CONTRADA_SECONDS ?? 8);
    await page.evaluate(() => {
      window.long = [];
      new PerformanceObserver((list) => window.long.push(...list.getEntries().map((each) => each.duration))).observe({ entryTypes: ['longtask'] });
    });
    await page.waitForFunction((most) => contradaMap.fences.byInterface.size >= most && !contradaMap.fences.loading, fences, { timeout: 300000 });
    await page.waitForFunction(() => contradaMap.state.skipped > 0 && contradaMap.scene.passing.length > 100, null, { timeout: 120000 });
    const cdp = await browser.newBrowserCDPSession();
    const spent = async () => { // processor time of the page's process and of the one that draws, seconds
      const { processInfo } = await cdp.send('SystemInfo.getProcessInfo');
      const of = (type) => processInfo.filter((each) => each.type === type).reduce((sum, each) => sum + each.cpuTime, 0);
      return [of('renderer'), of('GPU')];
    };
    const measure = async (map) => {
      const before = await spent();
      const figures = await page.evaluate(async ([map, seconds]) => {
        const { scene, state } = contradaMap;
        window.long = [];
        const start = { at: performance.now(), frames: scene.frames, shown: state.shown, skipped: state.skipped };
        const turns = [];
        let last = performance.now();
        await new Promise((done) => {
          const turn = (now) => {
            turns.push(now - last);
            last = now;
            if (now - start.at > 1000 * seconds) done(); else requestAnimationFrame(turn);
          };
          requestAnimationFrame(turn);
        });
        const took = (performance.now() - start.at) / 1000, at = (share) => Math.round(turns[Math.floor(turns.length * share)]);
        turns.sort((a, b) => a - b);
        return { map, fences: contradaMap.fences.byInterface.size, passing: scene.passing.length, 'shown/s': Math.round((state.shown - start.shown) / took), 'skipped/s': Math.round((state.skipped - start.skipped) / took), 'frames/s': Math.round(turns.length / took), 'pictures/s': Math.round((scene.frames - start.frames) / took), 'median frame, ms': at(0.5), 'p95, ms': at(0.95), 'p99, ms': at(0.99), 'worst, ms': Math.round(turns.at(-1)), 'long tasks, share': Math.round(100 * window.long.reduce((a, b) => a + b, 0) / (1000 * took)) / 100 };
      }, [map, seconds]);
      const after = await spent();
      figures['page, cores'] = Math.round((100 * (after[0] - before[0])) / seconds) / 100;
      figures['drawing, cores'] = Math.round((100 * (after[1] - before[1])) / seconds) / 100;
      assert.ok(figures.passing <= 6000);
      assert.ok(figures['shown/s'] <= 500);
      console.log(JSON.stringify(figures));
    };
    await measure('at rest');
    const box = await page.locator('#map').boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.mouse.down();
    let dragging = true;
    const drag = (async () => { for (let i = 0; dragging; i++) { await page.mouse.move(box.x + box.width / 2 + 150 * Math.sin(i / 9), box.y + box.height / 2 + 90 * Math.cos(i / 13)); await page.waitForTimeout(16); } })();
    await measure('dragged');
    dragging = false;
    await drag;
    await page.mouse.up();
    await page.waitForTimeout(2500);
    await shot(page, 'crowd');
    await checkManners(opened);
  },
};

let failed = 0;
for (const name of wanted) {
  try {
    await scenarios[name]();
    console.log(`${name}: ok`);
  } catch (error) {
    failed = 1;
    console.log(`${name}: ${error.stack}`);
    const [last] = browser.contexts().slice(-1);
    console.log(JSON.stringify(await last?.pages()[0]?.evaluate(() => ({ own: [...contradaMap.fences.own.keys()], asked: [...contradaMap.connection.subscriptions.keys()], tool: contradaMap.state.tool, shown: contradaMap.state.shown })).catch(String)));
    await last?.pages()[0]?.screenshot({ path: path.join(out, `${name}-failed.png`) }).catch(() => {});
  }
}
await browser.close();
process.exit(failed);
