// Builds the live map: bundles src/main.js and its second thread, copies the page and its style, collects the licences of what is inside.
// Fails when the whole is larger than the page may be, or when a package in the bundle has no licence text.
import { build } from 'esbuild';
import { copyFile, mkdir, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = path.dirname(fileURLToPath(import.meta.url));
const OUT = path.resolve(process.argv[2] ?? path.join(HERE, '..', 'client', 'gateway', 'page'));
const MOST = 1.5e6; // bytes of the page, uncompressed

await rm(OUT, { recursive: true, force: true });
await mkdir(OUT, { recursive: true });
const { metafile } = await build({
  absWorkingDir: HERE,
  entryPoints: [{ in: 'src/main.js', out: 'map' }, { in: 'src/painter.js', out: 'painter' }],
  outdir: OUT,
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  legalComments: 'none', // LICENSES.txt has them whole
  metafile: true,
  logLevel: 'warning',
});
for (const name of ['index.html', 'map.css']) await copyFile(path.join(HERE, 'src', name), path.join(OUT, name));

const packages = new Set();
for (const input of Object.keys(metafile.inputs)) {
  const found = input.match(/^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//);
  if (found) packages.add(found[1]);
}
const texts = [];
for (const folder of [...packages].sort()) {
  const full = path.join(HERE, folder);
  const about = JSON.parse(await readFile(path.join(full, 'package.json'), 'utf8'));
  const file = (await readdir(full)).find((name) => /^(licen[cs]e|copying)/i.test(name));
  const text = file ? await readFile(path.join(full, file), 'utf8') : null;
  if (text === null && !about.license) throw new Error(`${folder} says nothing of its licence`);
  texts.push(`${about.name} ${about.version} (${about.license})\n\n${text ?? `Licensed under ${about.license}.`}`);
}
const rule = `\n\n${'-'.repeat(78)}\n\n`;
await writeFile(
  path.join(OUT, 'LICENSES.txt'),
  `The live map is part of Contrada (Apache-2.0). These packages are in map.js:${rule}${texts.join(rule)}\n`,
);

let size = 0;
for (const name of await readdir(OUT)) if (name !== 'LICENSES.txt') size += (await stat(path.join(OUT, name))).size;
if (size > MOST) throw new Error(`the page has ${size} bytes; it may have ${MOST}`);
console.log(`${OUT}: ${(size / 1000).toFixed(0)} kB, ${packages.size} packages inside`);
