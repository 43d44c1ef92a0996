// SPDX-License-Identifier: MIT
// The page's tools with a played model, which calls what its question says: the search in documents, programs, and the
// switches of all tools. What the demo model does with them: tools.test.mjs.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, test } from 'node:test';
import { search } from '../../web/document/passages.js';
import { complaints, eventually, station } from './browser.mjs';
import { openChat, storeSettings } from './chat-page.mjs';
import { playedSite } from './played.mjs';

const site = await playedSite();
after(site.remove);
const here = station({ root: site.root });

const WITH_TOOLS = { init: storeSettings, initArgument: { tools: 'auto' } };

/** Opens the page, whose played model may call tools. */
const open = (more = {}) => openChat(here, { ...WITH_TOOLS, ...more });

/** The names of the tools that the last question had. */
const offered = (page) => page.evaluate(() => globalThis.offered.map(({ name }) => name));

/** Lets the model call a tool. @returns {Promise<string>} the result, as the reply shows it */
async function call({ page, chat }, name, given) {
  assert.match(await chat.ask(`Call ${name} ${JSON.stringify(given)}`), /^It said: /);
  return page.getByTestId('call').last().locator('pre').last().textContent();
}

async function attach(page, name, text) {
  const chosen = page.waitForEvent('filechooser');
  await page.getByTestId('attach').click();
  await (await chosen).setFiles({ name, mimeType: 'text/plain', buffer: Buffer.from(text) });
  await page.locator('#attached li').filter({ hasText: name }).waitFor();
}

const FILLER = 'Grain comes by boat, and flour goes by cart. ';

test('a search finds the nearest passages of all documents, in their order, or none', () => {
  const texts = [
    { name: 'a.txt', text: `# Mill\n\n${FILLER.repeat(30)}\n\n# Key\n\nThe golden key is below the stone.` },
    { name: 'b.txt', text: `[page 1]\n\n${FILLER}\n\n[page 2]\n\nA second key is in the well.` },
  ];
  assert.deepEqual(search({ texts, question: 'Where are keys?', most: 1000 }), [
    { name: 'a.txt', place: 'Key', text: '# Key\n\nThe golden key is below the stone.' },
    { name: 'b.txt', place: 'page 2', text: 'A second key is in the well.' },
  ]);
  assert.deepEqual(search({ texts, question: 'golden key', most: 90, least: 200 }).map(({ name }) => name), ['a.txt'], 'the nearest one, if there is room for one');
  assert.deepEqual(search({ texts, question: 'zebra', most: 1000 }), []);
  assert.deepEqual(search({ texts: [], question: 'key', most: 1000 }), []);
});

test('the search is offered where there are documents, and answers with document and place', async () => {
  const visit = await open();
  const { page, chat, close } = visit;
  assert.equal(await chat.ask('Call search_documents {"words": "key"}'), 'There is no search_documents.');
  assert.deepEqual(await offered(page), ['now', 'calculate']);
  await attach(page, 'book.txt', `# Mill\n\n${FILLER.repeat(40)}\n\n# Secrets\n\nThe golden key is below the third stone.`);
  assert.equal(await call(visit, 'search_documents', { words: 'golden keys' }), '[book.txt, Secrets]\n# Secrets\n\nThe golden key is below the third stone.');
  assert.match(await page.evaluate(() => globalThis.offered.at(-1).description), /of this conversation: book\.txt$/);
  assert.equal(await call(visit, 'search_documents', { words: 'zebra' }), 'No passage of the documents has any of these words.', 'also in later questions');
  const calls = chat.page.getByTestId('call');
  await calls.last().locator('summary').click();
  assert.match(await calls.last().innerText(), /Called search_documents[^]*zebra[^]*No passage/);
  await page.getByTestId('new-chat').click();
  assert.equal(await chat.ask('Call search_documents {"words": "key"}'), 'There is no search_documents.', 'not in another conversation');
  await close();
});

/** A visit in which programs are switched on. */
const openWithPrograms = (more) => open({ init: () => {
  localStorage.setItem('quern:settings', '{"tools":"auto"}');
  localStorage.setItem('quern:tools', '{"switches":{"run_javascript":true}}');
}, ...more });

const runs = (visit, code) => call(visit, 'run_javascript', { code });

test('a program prints and returns; its failures are told', async () => {
  const visit = await openWithPrograms();
  for (const [code, result] of [
    ['6 * 7', '42'],
    ['[1, 2].map((x) => x ** 2)', '[1,4]'],
    ['return 1 + 1;', '2'],
    ['console.log("a", { b: 1 }); return await Promise.resolve("c");', 'a {"b":1}\nReturned: c'],
    ['console.log("only printed")', 'only printed\n'],
    ['let x = 5', 'The program printed and returned nothing.'],
    ['new Map([["a", [1n, undefined, new Set([2])]]])', '{"a":["1","undefined",[2]]}'],
    ['const a = {}; a.a = a; return a', '[object Object]'],
    ['null', 'null'],
    ['throw new TypeError("no")', 'Error: TypeError: no'],
    ['console.log("before"); nothing()', 'Error: ReferenceError: nothing is not defined\nIt had printed:\nbefore\n'],
    ['throw 1', 'Error: Thrown: 1'],
    ['await new Promise(() => {})', 'Error: The program waits for something that never comes.'],
  ]) assert.equal(await runs(visit, code), result, code);
  assert.match(await runs(visit, 'let let = 1'), /^Error: SyntaxError: /);
  await visit.close();
});

test('a hostile program reaches nothing, ends in time, and takes no more than its memory', async (t) => {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    response.writeHead(200, { 'Access-Control-Allow-Origin': '*', 'Content-Type': 'text/javascript' }).end('1');
  });
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  t.after(() => server.close());
  const url = `http://localhost:${server.address().port}/`;
  const visit = await openWithPrograms();
  const absent = ['fetch', 'XMLHttpRequest', 'WebSocket', 'WebTransport', 'EventSource', 'RTCPeerConnection', 'importScripts', 'Worker', 'BroadcastChannel', 'postMessage', 'parent', 'window', 'self', 'document', 'location', 'navigator', 'localStorage', 'indexedDB', 'caches', 'WebAssembly', 'require', 'process', 'std', 'os'];
  assert.deepEqual(JSON.parse(await runs(visit, `${JSON.stringify(absent)}.filter((name) => name in globalThis)`)), []);
  assert.match(await runs(visit, `fetch('${url}')`), /^Error: ReferenceError: fetch is not defined$/);
  assert.match(await runs(visit, `import('${url}')`), /^Error: /);
  assert.match(await runs(visit, `globalThis.constructor.constructor('return typeof fetch')()`), /^undefined$/);
  const names = await runs(visit, 'Object.getOwnPropertyNames(globalThis).filter((name) => /^[a-z]/.test(name))');
  assert.deepEqual(JSON.parse(names).filter((name) => !/^(?:parse|is[FN]|decode|encode|escape|unescape|eval|undefined|globalThis|console|queueMicrotask|performance|gc|print)/.test(name)), []);
  const ends = /^Error: The program was ended/;
  for (const [code, result] of [
    ['console.log("so far"); while (true) {}', /^Error: The program was ended.*\nIt had printed:\nso far\n$/],
    ['const again = () => Promise.resolve().then(again); await again()', /^Error: The program (?:was ended|threw null, or it had no memory)/],
    ['for (;;) console.log("x".repeat(1e4))', /The program was ended.*\nIt had printed:\nx{500}/],
    ['"x".repeat(3e4)', /^x{4096}\n\(The rest is left out\.\)$/],
    ['const a = []; for (;;) a.push(new Uint8Array(1e6))', ends],
    ['const a = []; for (;;) a.push(new Array(1e5).fill(1.5))', ends],
    ['new ArrayBuffer(1e9)', /^Error: The program was ended, because it took more than 64 MB of memory\.$/],
    ['"x".repeat(1e9)', /^Error: /],
    ['const f = () => f() + 1; f()', /^Error: (?:RangeError: Maximum call stack|The program was ended, because its calls)/],
    ['let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a', /^\S/],
    ['2n ** 100000000n', /^Error: /],
    ['throw { get name() { for (;;); } }', /^Error: /],
    ['throw { get message() { console.log(new Uint8Array(2e8).length); return "no"; } }', /^(?![^]*2000)Error: /],
    ['const long = "é".repeat(2e7); for (;;) console.log(long)', /The program was ended.*\nIt had printed:\né{500}/],
    ['return { toJSON() { for (;;); } }', ends],
    ['Array.prototype.map = Array.prototype.join = JSON.stringify = String = () => ({}); console.log(1); return {}', /./],
    ['})(); globalThis.x = 1; (() => {', /./],
  ]) {
    const start = performance.now();
    assert.match(await runs(visit, code), result, code);
    assert.ok(performance.now() - start < 12_000, `${code}: ${performance.now() - start} ms`);
  }
  assert.equal(await runs(visit, 'typeof x'), 'undefined', 'each program has an engine of its own');
  assert.deepEqual(asked, []);
  await visit.close();
});

test('a program for which the engine cannot be fetched fails at once', async () => {
  const visit = await openWithPrograms({ expected: /quickjs\.wasm|wasm (?:streaming|compile)|Aborted|instantiat|ERR_FAILED/i });
  await visit.page.route('**/quickjs.wasm', (route) => route.abort());
  assert.match(await runs(visit, '6 * 7'), /the first program needs a connection\.$/);
  await visit.close();
});

test('a reply that is stopped stops its program', async () => {
  const visit = await openWithPrograms();
  const { page, chat, close } = visit;
  await chat.send('Call run_javascript {"code": "for (;;);"}');
  await page.getByTestId('call').getByText('Calling run_javascript').waitFor();
  await page.getByTestId('stop').click();
  await chat.ended();
  await eventually(() => page.workers().every((worker) => !worker.url().includes('interpreter')), 'the worker is gone');
  await close();
});

test('programs are off by default, and say when their part of the page is missing', async () => {
  const visit = await open();
  assert.equal(await visit.chat.ask('Call run_javascript {"code": "1"}'), 'There is no run_javascript.');
  await visit.close();
  const other = await openWithPrograms({ expected: /ERR_FAILED|interpreter/ });
  await other.page.route('**/late/interpreter.js', (route) => route.abort());
  assert.equal(await runs(other, '1'), 'Error: This page cannot load what runs programs: the first program needs a connection.');
  await other.close();
});

test('each tool has a switch in the settings, which is kept and which no preset changes', async () => {
  const visit = await open();
  const { page, chat, close } = visit;
  const press = async (name) => {
    await page.getByTestId('settings').click();
    await page.getByRole('switch', { name, exact: true }).click();
    await page.keyboard.press('Escape');
  };
  assert.equal(await chat.ask('Call none {}'), 'There is no none.');
  assert.deepEqual(await offered(page), ['now', 'calculate']);
  await press('JavaScript');
  await press('Date and time');
  assert.equal(await runs(visit, '1 + 1'), '2');
  assert.deepEqual(await offered(page), ['calculate', 'run_javascript']);
  await page.getByTestId('call').locator('summary').click();
  assert.match(await page.getByTestId('call').innerText(), /^Called run_javascript\s+Program\s+1 \+ 1\s+Result\s+2$/);
  await page.reload();
  await chat.ready();
  await page.getByTestId('settings').click();
  const states = () => page.locator('#tool-switches').getByRole('switch').evaluateAll((all) => all.map((one) => [one.getAttribute('aria-label'), one.getAttribute('aria-checked')]));
  const now = [['Date and time', 'false'], ['Calculator', 'true'], ['Search in documents', 'true'], ['JavaScript', 'true']];
  await page.getByRole('switch', { name: 'JavaScript' }).waitFor();
  assert.deepEqual(await states(), now);
  assert.deepEqual(await complaints(visit), []);
  await page.getByRole('button', { name: 'Reset all' }).click();
  assert.deepEqual(await states(), now, 'a reset empties the fields');
  await page.keyboard.press('Escape');
  await page.evaluate((preset) => { location.hash = `preset=${encodeURIComponent(JSON.stringify(preset))}`; }, { name: 'Evil', tools: 'auto', switches: { now: true }, run_javascript: false });
  await page.getByRole('button', { name: 'Use it' }).click();
  await page.getByRole('switch', { name: 'JavaScript' }).waitFor();
  assert.deepEqual(await states(), now);
  await page.keyboard.press('Escape');
  await press('Calculator');
  await press('JavaScript');
  assert.equal(await chat.ask('Call calculate {"expression": "1"}'), 'There is no calculate.');
  assert.deepEqual(await offered(page), [], 'without any tool the model is asked without tools');
  await close();
});
