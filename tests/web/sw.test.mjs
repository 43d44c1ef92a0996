// SPDX-License-Identifier: MIT
// quern/sw on a foreign site whose host sends no headers, with the recipe's own page (docs/recipes/service-worker.md):
// the page loads itself once more and then has threads. Pages below another folder's worker, and other origins, are
// left alone.
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { transform } from 'esbuild';
import { removeFolder, temporaryFolder } from '../js/support/pack.mjs';
import { PROJECT, eventually, station } from './browser.mjs';

const RECIPE = readFileSync(join(PROJECT, 'docs/recipes/service-worker.md'), 'utf8');
const [, TYPED] = /^```ts isolate\.ts\n([\s\S]*?)^```$/m.exec(RECIPE);
const { code: ISOLATE } = await transform(TYPED, { loader: 'ts' });

/** The recipe's main.js, which shows the package's support() instead of a model's answers. */
const MAIN = `import { support } from './quern.js';
import { isolate } from './isolate.js';
if (!await isolate().catch(() => false)) document.body.append(support().threads ? 'threads' : 'one thread');`;

const folder = temporaryFolder();
after(() => removeFolder(folder));

/** A site in a folder. @param {string} address of the service worker, as the page registers it */
function makeSite(name, address, policy = '') {
  const to = join(folder, name);
  mkdirSync(to);
  for (const [from, file] of [['sw.js', 'sw.js'], ['index.js', 'quern.js']]) copyFileSync(join(PROJECT, 'dist', from), join(to, file));
  writeFileSync(join(to, 'isolate.js'), ISOLATE.replace('./sw.js', address));
  writeFileSync(join(to, 'main.js'), MAIN);
  writeFileSync(join(to, 'index.html'), `<!doctype html><title>A site</title>${policy && `<meta http-equiv="Content-Security-Policy" content="${policy}">`}<link rel="icon" href="data:,"><script type="module" src="main.js"></script><body>`);
}

makeSite('plain', './sw.js');
makeSite('lenient', './sw.js?coep=credentialless');
makeSite('without', './missing.js');
makeSite('trusted', './sw.js', "require-trusted-types-for 'script'; trusted-types quern quern-isolate");
makeSite('distrusted', './sw.js', "require-trusted-types-for 'script'; trusted-types quern");
const here = station({ root: folder, isolate: false, csp: false, serviceWorker: true });

const says = (page, text) => eventually(async () => (await page.locator('body').innerText().catch(() => '')) === text, text);
const policyOf = (page) => page.evaluate(async () => (await fetch('main.js')).headers.get('Cross-Origin-Embedder-Policy'));

test('a page gets its threads by loading itself once more', async () => {
  for (const [site, policy] of [['plain', 'require-corp'], ['lenient', 'credentialless'], ['trusted', 'require-corp']]) {
    const visit = await here.open(`${site}/`);
    let loads = 1;
    visit.page.on('load', () => { loads++; });
    await says(visit.page, 'threads');
    assert.equal(await policyOf(visit.page), policy);
    assert.ok(loads <= 2);
    await visit.page.reload();
    await says(visit.page, 'threads');
    await visit.close();
  }
});

test('where the worker is refused the page starts on one thread', async () => {
  const visit = await here.open('without/', { expected: /missing\.js|404/ });
  await says(visit.page, 'one thread');
  await visit.close();
});

test('where Trusted Types forbid the recipe\'s policy too', async () => {
  const visit = await here.open('distrusted/', { expected: /Trusted|policy/i });
  await says(visit.page, 'one thread');
  await visit.close();
});

test('it leaves other origins and other folders alone', async () => {
  const visit = await here.open('plain/', { origins: ['http://models.example'] });
  const { page } = visit;
  await says(page, 'threads');
  await visit.context.route('http://models.example/**', (route) => route.fulfill({ body: 'bytes', headers: { 'Access-Control-Allow-Origin': '*' } }));
  assert.deepEqual(await page.evaluate(async () => {
    const response = await fetch('http://models.example/model.gguf');
    return [await response.text(), response.type];
  }), ['bytes', 'cors']);
  await page.goto(`${here.url}without/isolate.js`);
  assert.equal(await page.evaluate(() => crossOriginIsolated), false);
  await visit.close();
});
