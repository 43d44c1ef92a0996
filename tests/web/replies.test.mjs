// SPDX-License-Identifier: MIT
// How replies look in Chromium: mathematics, code, tables, lists and footnotes, right-to-left text, a call that was cut
// off; what is copied, saved and previewed; that a growing text ends as one in one piece and keeps what is finished; and
// that hostile texts run nothing and hang nothing. How texts are split: tokens.test.mjs.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { build } from 'esbuild';
import { serve } from '../../tools/serve.mjs';
import { PROJECT, SITE, Visit, complaints, eventually, station } from './browser.mjs';
import { openChat } from './chat-page.mjs';
import { serveModels } from './model-host.mjs';

const here = station();

/** Opens the page with a stored reply. @param {object} [options] of the visit */
async function openReply(content, options = {}, where = here) {
  const stored = { version: 1, messages: [{ role: 'user', content: 'q' }, { role: 'assistant', content, thinking: '', thoughtMs: 0, note: '' }] };
  const visit = await openChat(where, { init: (text) => localStorage.setItem('quern:chat', text), initArgument: JSON.stringify(stored), ...options });
  return { ...visit, prose: visit.chat.reply.locator('.prose') };
}

const count = (visit, selector) => visit.prose.locator(selector).count();

test('formulas become MathML, under the policy, and what is refused stands as it was typed', async () => {
  const refused = ['$\\href{javascript:alert(1)}{x}$', '$\\nothing{x}$', '$\\includegraphics{https://example.com/a.png}$', `$${'\\sqrt '.repeat(300)}x$`, '$\\def\\a{\\a\\a}\\a$'];
  const visit = await openReply(`\\(E = mc^2\\) and $a_1*b*c_1$ cost $5 and $6.\n\n$$\n\\frac{1}{2}\n$$\n\n\\[ \\begin{align} x \\tag{1} \\end{align} \\]\n\n${refused.join('\n\n')}`);
  const { page, prose, close } = visit;
  await prose.locator('.formula > math').nth(3).waitFor();
  assert.equal(await count(visit, 'math'), 4);
  assert.deepEqual(await prose.locator('math').evaluateAll((nodes) => nodes.slice(0, 2).map((node) => node.textContent)), ['E=mc2', 'a1∗b∗c1']);
  assert.match(await prose.locator('p').first().innerText(), /cost \$5 and \$6\.$/);
  assert.equal(await count(visit, 'div.formula mfrac'), 1);
  const text = await prose.evaluate((node) => node.textContent);
  for (const source of refused) assert.ok(text.includes(source), source);
  assert.equal(await count(visit, 'a, img, [href], math [id]'), 0);
  assert.equal(await prose.locator('mfrac').evaluate((node) => getComputedStyle(node).fontFamily.includes('STIX Two Math')), true, 'its styles are there');
  await close();
});

test('a formula cannot cover what is beside it', async () => {
  const visit = await openReply('Before $a\\kern-900em b\\kern900em\\rule{900em}{900em}$ behind\n\nNext');
  const { page, prose, close } = visit;
  await prose.locator('math').waitFor({ state: 'attached' });
  const { height } = await prose.boundingBox();
  assert.ok(height < 1000, `${height}`);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false);
  await close();
});

test('tags, footnotes, tasks and line breaks are shown as people know them', async () => {
  const visit = await openReply('H<sub>2</sub>O<br>x<sup>2</sup> <b>b</b>[^1]\nline\n\n- [ ] to do\n- [x] done\n\n[^1]: The note.');
  const { page, prose, close } = visit;
  assert.deepEqual([await count(visit, 'sub'), await count(visit, 'p:first-child br'), await count(visit, 'b')], [1, 2, 0]);
  assert.deepEqual(await prose.locator('input').evaluateAll((nodes) => nodes.map(({ checked, disabled, ariaLabel }) => [checked, disabled, ariaLabel])), [[false, true, 'To do'], [true, true, 'Done']]);
  assert.equal(await prose.locator('li').first().evaluate((node) => getComputedStyle(node).listStyleType), 'none');
  await page.setViewportSize({ width: 700, height: 400 });
  await prose.getByRole('button', { name: 'Footnote 1' }).click();
  await eventually(() => prose.locator('[data-note="1"]').isVisible(), 'the note is in sight');
  assert.match(await prose.locator('[data-note="1"]').innerText(), /^1\s*The note\.$/);
  await close();
});

test('a call that the end cuts off is told in words', async () => {
  const { prose, close } = await openReply('Let me see.\n\n<tool_call>\n{"n');
  assert.match(await prose.innerText(), /^Let me see\.\s+The model began to call a tool here and has not finished the call\.$/);
  await close();
});

test('headings begin one level below the page\'s own and leave out none', async () => {
  const visit = await openReply('### First\n\n##### Second\n\n# Third');
  assert.deepEqual(await visit.prose.locator(':is(h1, h2, h3, h4, h5, h6)').evaluateAll((nodes) => nodes.map(({ localName }) => localName)), ['h2', 'h3', 'h2']);
  assert.deepEqual(await complaints(visit), []);
  await visit.close();
});

test('parts of one kind in a reply are no landmarks of the page, which would need different names', async () => {
  const table = '| a | b |\n|---|---|\n| 1 | 2 |\n\n';
  const visit = await openReply(`${table}Between.\n\n${table}${'```js\n1\n```\n\n'.repeat(2)}`);
  assert.deepEqual([await count(visit, 'table'), await count(visit, '.code')], [2, 2]);
  assert.deepEqual(await visit.prose.getByRole('region').count(), 0);
  assert.deepEqual(await complaints(visit), []);
  await visit.close();
});

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

test('a table scrolls sideways before it breaks what belongs together', async () => {
  const row = '| a model | 30 tokens/s | 1.5 GB at most | a sentence that is so long that it may well be broken into lines |';
  const { page, prose, close } = await openReply(`| name | speed | memory | note |\n| --- | ---: | --- | --- |\n${row}\n`, PHONE);
  const lines = await prose.locator('td').evaluateAll((cells) => cells.map((cell) => Math.round(cell.getBoundingClientRect().height / 24)));
  const heights = await prose.locator('td').evaluateAll((cells) => cells.map((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
  }));
  assert.deepEqual(heights.slice(0, 3), [1, 1, 1], `${lines}`);
  assert.ok(heights[3] > 1);
  assert.equal(await prose.locator('.table').evaluate((node) => node.scrollWidth > node.clientWidth), true);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false);
  await close();
});

const ARABIC = '## مقدمة\n\n`npm` نص عربي\n\n- عنصر `code`\n  - عنصر\n\n> اقتباس\n\n| الاسم | السرعة |\n| --- | --- |\n| كوين | 30 |\n\n```js\nlet a;\n```\n\nEnglish text.';

test('right-to-left text is mirrored as a whole, and code and other text are not', async () => {
  const { prose, close } = await openReply(ARABIC);
  const places = await prose.evaluate((node) => {
    const box = node.getBoundingClientRect();
    const at = (selector) => {
      const range = document.createRange();
      range.selectNodeContents(document.createTreeWalker(node.querySelector(selector), NodeFilter.SHOW_TEXT).nextNode());
      const { left, right } = range.getBoundingClientRect();
      return box.right - right < left - box.left ? 'right' : 'left';
    };
    const style = (selector, name) => getComputedStyle(node.querySelector(selector))[name];
    return {
      heading: at('h2'), paragraph: at('p'), item: at('li'), inner: at('li li'), quote: at('blockquote p'), first: at('td'), english: at(':scope > p:last-child'),
      list: style('ul', 'paddingRight'), bar: style('blockquote', 'borderRightWidth'), code: style('pre', 'direction'), inline: style('p > code', 'direction'),
    };
  });
  assert.deepEqual(places, {
    heading: 'right', paragraph: 'right', item: 'right', inner: 'right', quote: 'right', first: 'right', english: 'left', list: '24px', bar: '3px', code: 'ltr', inline: 'ltr',
  });
  await close();
});

const CODE = '```python\ndef f(x):  # comment\n    return "a" if x else None\n```\n\n```nonsense\nlet x\n```\n\n```js\nconst a = 1;';

test('code has colours of its language, in light and dark, and is saved with a fitting name', async () => {
  const visit = await openReply(CODE, { colorScheme: 'light' });
  const { page, prose, close } = visit;
  const blocks = prose.locator('.code');
  await blocks.nth(2).locator('.sh-keyword').waitFor();
  const kinds = (i) => blocks.nth(i).locator('span[class^=sh-]').evaluateAll((nodes) => nodes.map((node) => [node.className.slice(3), node.textContent.trim()]));
  assert.deepEqual((await kinds(0)).filter(([kind]) => kind !== 'class'), [['keyword', 'def'], ['comment', '# comment'], ['keyword', 'return'], ['string', '"a"'], ['keyword', 'if'], ['keyword', 'else']]);
  assert.deepEqual([await kinds(1), (await kinds(2))[0]], [[], ['keyword', 'const']]);
  assert.equal(await blocks.first().locator('code').evaluate((node) => node.textContent), 'def f(x):  # comment\n    return "a" if x else None');
  const colour = () => blocks.first().locator('.sh-keyword').first().evaluate((node) => getComputedStyle(node).color);
  const light = await colour();
  assert.deepEqual(await complaints(visit), []);
  await page.emulateMedia({ colorScheme: 'dark' });
  assert.notEqual(await colour(), light);
  assert.deepEqual(await complaints(visit), []);
  for (const [i, name, text] of [[0, 'code.py', 'def f(x):  # comment\n    return "a" if x else None'], [1, 'code.txt', 'let x'], [2, 'code.js', 'const a = 1;']]) {
    const saved = page.waitForEvent('download');
    await blocks.nth(i).getByRole('button', { name: 'Save code as a file' }).click();
    assert.equal((await saved).suggestedFilename(), name);
    assert.equal(await readFile(await (await saved).path(), 'utf8'), text);
  }
  await close();
});

/** Markup that tries all ways out, and then says which it found, and that it ran. */
const escapee = (url) => `<!doctype html><h1 id="said">no</h1><form id="f" action="${url}/form"><input name="a"></form>
<link rel="stylesheet" href="${url}/style"><img src="${url}/image"><iframe src="${url}/frame"></iframe>
<script src="${url}/script"></script><meta http-equiv="refresh" content="1; url=${url}/refresh">
<script>
  const ways = [];
  const attempt = async (name, way) => { try { await way(); ways.push(name); } catch {} };
  await_all();
  async function await_all() {
    await attempt('fetch', () => fetch('${url}/fetch', { mode: 'no-cors' }));
    await attempt('parent', () => parent.document.title);
    await attempt('top', () => top.document.title);
    await attempt('storage', () => localStorage.length);
    await attempt('worker', () => new Promise((ok, no) => { const w = new Worker('data:text/javascript,0'); w.onerror = no; setTimeout(ok, 300); }));
    new Image().src = '${url}/image2';
    navigator.sendBeacon?.('${url}/beacon');
    try { new WebSocket('${url.replace('http', 'ws')}/socket'); } catch {}
    document.getElementById('f').submit();
    window.open('${url}/window');
    document.getElementById('said').textContent = 'ran: ' + ways.join();
    setTimeout(() => { location.href = '${url}/location?secret'; }, 300);
  }
</script>`;

test('a preview runs its scripts and reaches neither the network nor the page', async (t) => {
  const asked = [];
  const host = await serveModels(({ url }) => {
    asked.push(url);
    return Buffer.from('x');
  });
  t.after(host.close);
  const visit = await openReply(`\`\`\`html\n${escapee(host.url)}\n\`\`\`\n\n\`\`\`svg\n<svg xmlns="http://www.w3.org/2000/svg"><circle r="9"/></svg>\n\`\`\`\n\n\`\`\`js\n1\n\`\`\``, {
    origins: [host.url], expected: /Content Security Policy|Blocked|sandbox|policy:|Framing|violates|'localStorage'/i,
  });
  const { page, prose, close } = visit;
  await prose.getByRole('button', { name: 'Preview' }).nth(1).waitFor();
  assert.equal(await prose.getByRole('button', { name: 'Preview' }).count(), 2, 'of HTML and SVG only');
  await prose.getByRole('button', { name: 'Preview' }).first().click();
  const inner = () => page.frames().find((frame) => frame.parentFrame()?.parentFrame());
  await eventually(async () => /^ran/.test(await inner()?.locator('#said').textContent({ timeout: 1000 }).catch(() => '') ?? ''), 'the script ran');
  assert.equal(await inner().locator('#said').textContent(), 'ran: ');
  await new Promise((done) => { setTimeout(done, 2000); });
  assert.deepEqual(asked, [], 'nothing has left');
  await page.getByRole('button', { name: 'Close' }).last().click();
  await eventually(async () => await page.locator('iframe').count() === 0, 'the frame is gone');
  await prose.getByRole('button', { name: 'Preview' }).nth(1).click();
  await eventually(async () => await inner()?.locator('circle').count() === 1, 'the image is there');
  await close();
});

test('a copied reply is rich text and Markdown', async () => {
  const markdown = '## Title\n\n**bold** $x^2$ `code`\n\n- [x] done\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n```js\nlet a = 1;\n```\n\n[link](https://example.com/)';
  const { page, chat, prose, close } = await openReply(markdown, { permissions: ['clipboard-read', 'clipboard-write'] });
  await prose.locator('math').waitFor();
  await prose.locator('.sh-keyword').waitFor();
  await chat.reply.getByRole('button', { name: 'Copy reply' }).click();
  await chat.reply.getByRole('button', { name: 'Copied' }).waitFor();
  const [types, plain, html] = await page.evaluate(async () => {
    const [item] = await navigator.clipboard.read();
    return [item.types, ...await Promise.all(['text/plain', 'text/html'].map(async (type) => (await item.getType(type)).text()))];
  });
  assert.deepEqual(types.toSorted(), ['text/html', 'text/plain']);
  assert.equal(plain, markdown);
  for (const part of [/<h2[^>]*>Title<\/h2>/, /<strong[^>]*>bold<\/strong>/, /<math/, /<td[^>]*>1<\/td>/, /<pre[^>]*><code[^>]*>let a = 1;<\/code><\/pre>/, /<a [^>]*href="https:\/\/example\.com\/"/, /☑/]) assert.match(html, part);
  assert.doesNotMatch(html, /<button|<input|class="(?!tml)/);
  await close();
});

test('what replies need late is fetched with the first that needs it, and is there without a network afterwards', async () => {
  const server = await serve({ root: SITE });
  const visit = await openReply('$x^2$\n\n```js\nlet a;\n```', { serviceWorker: true, expected: /Failed to load resource: net::ERR_/ }, {
    open: (path, options) => Visit.open(here.browser, server.url + path, options),
  });
  const { page, context, chat, prose, close } = visit;
  await page.locator('html[data-offline=ready]').waitFor();
  const kept = () => page.evaluate(async () => (await Promise.all((await caches.keys()).map(async (name) => (await (await caches.open(name)).keys()).map(({ url }) => url)))).flat().filter((url) => url.includes('/late/')).map((url) => url.split('/').at(-1)).sort());
  await eventually(async () => (await kept()).length >= 4, async () => `they are kept: ${await kept()}`);
  assert.deepEqual((await kept()).filter((name) => /preview|rich/.test(name)), [], 'and no others');
  await context.setOffline(true);
  await server.close();
  await page.reload();
  await chat.ready();
  await prose.locator('math').waitFor();
  await prose.locator('.sh-keyword').waitFor();
  await close();
});

test('a page of plain text fetches none of it', async () => {
  const asked = [];
  const { page, close } = await openReply('Plain **text**.\n\n- a list\n\n| a |\n| --- |\n| b |');
  page.on('request', (request) => asked.push(request.url()));
  await page.reload();
  await page.locator('.prose').waitFor();
  assert.deepEqual(asked.filter((url) => url.includes('/late/')), []);
  await close();
});

/** A site with the stream by itself (stream.js), for texts that no model writes. */
const siteWithStream = await mkdtemp(join(tmpdir(), 'quern-stream-'));
await cp(SITE, siteWithStream, { recursive: true });
await build({
  entryPoints: [join(PROJECT, 'web/message/stream.js')], outfile: join(siteWithStream, 'stream.js'), bundle: true, format: 'esm', external: ['./late/*'], logLevel: 'warning',
});
after(() => rm(siteWithStream, { recursive: true }));
const bench = station({ root: siteWithStream });

/** Opens the page and gives it `show(pieces)`, which resolves to the nodes of a text that arrives in these pieces. */
async function openStream(options) {
  const visit = await openChat(bench, options);
  await visit.page.evaluate(async () => {
    const { MarkdownStream } = await import('/stream.js');
    globalThis.newStream = () => {
      const prose = document.createElement('div');
      prose.className = 'prose';
      document.getElementById('log').append(prose);
      return Object.assign(new MarkdownStream(prose), { prose });
    };
    globalThis.frame = () => new Promise((done) => { requestAnimationFrame(() => setTimeout(done, 0)); });
  });
  return visit;
}

const MIXED = readFileSync(new URL('../fixtures/replies/mixed.md', import.meta.url), 'utf8');

/** Blocks that are longer than any may be, and are therefore cut: code, a list, a table, a quote. */
const LONG = [
  `\`\`\`js\n${Array.from({ length: 1200 }, (_, i) => `const a${i} = "b" + ${i};\n${i % 9 ? '' : '\n'}`).join('')}\`\`\``, '- item with **words** and $x$\n'.repeat(300),
  `| a | b |\n| --- | --- |\n${'| 1 | some more words |\n'.repeat(400)}`, '> a line of a quote\n'.repeat(400),
].join('\n\n');

test('a text in crumbs ends as the same nodes as in one piece', async () => {
  const { page, close } = await openStream();
  const [long, other] = await page.evaluate(compare, [LONG, [LONG.length, 1777]]);
  assert.equal(other, long);
  const [whole, ...others] = await page.evaluate(compare, [MIXED, [MIXED.length, 1, 3, 17]]);
  for (const one of others) assert.equal(one, whole);
  assert.ok(/<math/.test(whole) && /sh-keyword/.test(whole) && /<table/.test(whole));
  await close();
});

/** In the page: a text as it is shown after it has come in pieces of each of some sizes. */
async function compare([text, sizes]) {
  const shown = [];
  for (const size of sizes) {
    const stream = globalThis.newStream();
    for (let i = 0; i < text.length; i += size) {
      stream.append(text.slice(i, i + size));
      if (i % 2 === 0) stream.prose.isConnected && await globalThis.frame();
    }
    await stream.finish();
    await new Promise((done) => { setTimeout(done, 700); });
    stream.prose.normalize();
    shown.push(stream.prose.outerHTML);
    stream.prose.remove();
  }
  return shown;
}

test('what is finished is not rendered again while a reply grows', async () => {
  const { page, close } = await openStream();
  const changes = await page.evaluate(async () => {
    const stream = globalThis.newStream();
    stream.append('First $x^2$ and **bold**, $y$ too\n\n1. one $z$\n2. two');
    for (let i = 0; i < 40 && stream.prose.querySelectorAll('math').length < 3; i++) await new Promise((done) => { setTimeout(done, 50); });
    const kept = [...stream.prose.querySelectorAll('math, strong, p, li')];
    for (let i = 0; i < 30; i++) {
      stream.append(i % 10 ? ' word' : '\n3. item');
      await new Promise((done) => { setTimeout(done, 20); });
    }
    await stream.finish();
    return { kept: kept.length, gone: kept.filter((node) => !node.isConnected).length, formulas: stream.prose.querySelectorAll('math').length };
  });
  assert.deepEqual(changes, { kept: 7, gone: 0, formulas: 3 });
  await close();
});

/** Longest time that a hostile text may take, in ms of the clock on a busy machine. */
const MOST_MS = 20_000;

test('hostile texts run nothing and hang nothing', async (t) => {
  const texts = {
    line: 'x'.repeat(1_000_000), words: 'word '.repeat(200_000), quotes: '>'.repeat(10_000), brackets: '['.repeat(10_000), lists: '- '.repeat(10_000), nested: Array.from({ length: 300 }, (_, i) => `${' '.repeat(2 * i)}- x`).join('\n'),
    dollars: '$'.repeat(10_000), formulas: '$x$ '.repeat(10_000), open: '$x '.repeat(10_000), braces: `$$${'{'.repeat(3000)}$$`, roots: `$$${'\\sqrt'.repeat(600)} x$$`, macros: '$\\def\\a#1{\\b{#1#1}}\\def\\b#1{\\a{#1#1}}\\a{x}$',
    scripts: '<script>globalThis.ran = 1</script>\n'.repeat(1000), links: '[a](javascript:globalThis.ran=1) <javascript:globalThis.ran=1> [b](data:text/html,x) '.repeat(200), entities: '&lt;script&gt;&#60;img src=x onerror=globalThis.ran=1&#62; &amp;amp; '.repeat(500),
    code: `\`\`\`js\n${'/a[ '.repeat(2000)}\n${'--\n'.repeat(8000)}`, css: `\`\`\`css\n${'-- '.repeat(8000)}\n\`\`\``, notes: '[^1]'.repeat(3000), subs: '<sub>'.repeat(3000), tables: '|'.repeat(10_000),
  };
  const { page, close } = await openStream();
  for (const [name, text] of Object.entries(texts)) {
    const took = await page.evaluate(async (whole) => {
      const start = performance.now();
      const stream = globalThis.newStream();
      stream.append(whole);
      await stream.finish();
      await globalThis.frame();
      const found = stream.prose.querySelectorAll('script, img, iframe, [onerror], a:not([href^=http], [href^=mailto])').length;
      stream.prose.remove();
      return { ms: performance.now() - start, found };
    }, text);
    t.diagnostic(`${name}: ${took.ms.toFixed(0)} ms`);
    assert.equal(took.found, 0, name);
    assert.ok(took.ms < MOST_MS, `${name}: ${took.ms} ms`);
  }
  assert.equal(await page.evaluate(() => globalThis.ran), undefined);
  await close();
});
