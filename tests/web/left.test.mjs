// SPDX-License-Identifier: MIT
// In Firefox, on a host without COOP and COEP: neither the page's own reload nor a visit to another site counts as an
// end by the browser. There the next page runs in another process, and a page that is left loses what it writes into
// sessionStorage. This Firefox has no driver (undriven.mjs); a script beside the page reports what the page says.
import assert from 'node:assert/strict';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { SITE } from './browser.mjs';
import { openFirefox, openMailbox } from './undriven.mjs';

/** In the page: reports its notices once it is ready, then leaves for another site, which leads back once. */
function probe([report, other]) {
  const text = (selector) => [...document.querySelectorAll(selector)].map((node) => node.textContent).join();
  const isBack = location.search.includes('back');
  const look = async () => {
    if (text('[data-testid=status]') !== 'Ready') return setTimeout(look, 50);
    const said = { isolated: crossOriginIsolated, isBack, notices: text('[data-testid=notice] .card-message') };
    await fetch(report, { method: 'POST', mode: 'no-cors', body: JSON.stringify(said) });
    if (!isBack) location.href = `${other}?${encodeURIComponent(location.href)}`;
    return undefined;
  };
  look();
}

const BACK = '<!doctype html><title>Back</title><script>location.href = `${decodeURIComponent(location.search.slice(1))}?back`</script>';

test('Firefox: the page\'s own reload and a visit to another site are no end', { timeout: 120_000 }, async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'quern-left-'));
  const [site, elsewhere] = [join(root, 'site'), join(root, 'elsewhere')];
  t.after(() => rm(root, { recursive: true }));
  await cp(SITE, site, { recursive: true });
  await mkdir(elsewhere);
  await writeFile(join(elsewhere, 'index.html'), BACK);
  const other = await serve({ root: elsewhere, csp: false, isolate: false });
  const page = await serve({ root: site, isolate: false });
  for (const { close } of [other, page]) t.after(close);
  const { next, url } = await openMailbox(t);
  const html = await readFile(join(site, 'index.html'), 'utf8');
  await writeFile(join(site, 'index.html'), html.replace('<script ', '<script src="./probe.js"></script>\n<script '));
  await writeFile(join(site, 'probe.js'), `(${probe})(${JSON.stringify([url, other.url.replace('localhost', '127.0.0.1')])});`);
  await openFirefox(t, page.url);
  for (const isBack of [false, true]) {
    const { read, ...said } = await next();
    assert.deepEqual(said, { isolated: true, isBack, notices: '' });
    read();
  }
});
