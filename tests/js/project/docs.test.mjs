// SPDX-License-Identifier: MIT
// The documentation as it is built: everything that index.d.ts and errors.js have is on it, its links lead somewhere, its pages
// ask nobody else for anything, the search finds things, and the recipes' code is code: it parses, fits the types, and what can run here does.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { transform } from 'esbuild';
import { MEANS, find } from '../../../docs/theme/find.js';
import { buildDocs, pageErrors } from '../../../tools/docs.mjs';
import { plain } from '../../../tools/docs/html.mjs';
import { load, models } from '../../../dist/node.js';
import { fakeModel } from '../../../dist/testing.js';
import { serve } from '../../../tools/serve.mjs';
import { collect } from '../support/helper.mjs';
import { removeFolder, temporaryFolder } from '../support/pack.mjs';

const PROJECT = fileURLToPath(new URL('../../..', import.meta.url));
const folder = temporaryFolder();
/** Recipes that run import packages, which are found from within the project. */
const running = mkdtempSync(join(PROJECT, 'build/recipes-'));
const site = join(folder, 'site');
const read = (path) => readFileSync(join(site, path), 'utf8');
const source = (path) => readFileSync(join(PROJECT, path), 'utf8');

let pages;
let ids;      // page -> what on it can be linked to
before(async () => {
  ({ pages } = await buildDocs({ out: site }));
  ids = new Map(pages.map((path) => [path, new Set([...read(path).matchAll(/ id="([^"]+)"/g)].map(([, id]) => id))]));
});
after(() => { for (const made of [folder, running]) removeFolder(made); });

const everyId = () => new Set([...ids.values()].flatMap((set) => [...set]));

test('every name that index.d.ts exports, and every member of it, has a place', () => {
  const here = everyId();
  let name;
  let count = 0;
  for (const line of source('js/index.d.ts').split('\n')) {
    [, name] = /^export (?:declare )?(?:abstract )?(?:interface|type|function|class|const|enum) (\w+)/.exec(line) ?? [undefined, name];
    const [, member] = /^ {2}(?:readonly )?(\w+)\??[:(]/.exec(line) ?? [];
    for (const id of [name, member && `${name}.${member}`]) assert.ok(!id || here.has(id), `${id} is not documented`);
    count += Boolean(member);
  }
  assert.ok(count > 150);
  for (const nested of ['Result.usage.cachedTokens', 'PhaseCost.operations.layerMs']) assert.ok(here.has(nested), nested);
});

test('every error code has a meaning, and the hint that a page gets', async () => {
  const { QuernError } = await pageErrors();
  const texts = [source('js/index.d.ts').match(/type ErrorCode =[^;]*/)[0], source('js/shared/hints.js').match(/HINTS = [^}]*/)[0]];
  const codes = new Set(texts.flatMap((text) => [...text.matchAll(/'((?:model|net|storage|mem|gpu|env|engine|image|use)\/[a-z]+)'/g)]).map(([, code]) => code));
  assert.ok(codes.size > 25);
  const sections = new Map(read('reference/errors.html').split('<h3 id="').slice(1).map((text) => [text.slice(0, text.indexOf('"')), plain(text.slice(text.indexOf('</h3>')))]));
  for (const code of codes) {
    assert.ok(/[a-z]{3}/.test(sections.get(code)?.split('error.hint')[0] ?? ''), `docs/errors.md says nothing of ${code}`);
    assert.ok(sections.get(code).includes(new QuernError(code, '').hint), code);
  }
  assert.deepEqual([...sections.keys()].filter((code) => !codes.has(code)), []);
});

test('every link leads to a file, and to a place in it', () => {
  for (const page of pages) {
    for (const [, address] of read(page).matchAll(/ (?:href|src)="([^"]*)"/g)) {
      if (/^https?:/.test(address)) continue;
      const { pathname, hash } = new URL(address, `file:///${page}`);
      const path = decodeURIComponent(pathname.slice(1));
      assert.ok(existsSync(join(site, path)), `${page}: ${address}`);
      if (hash && ids.has(path)) assert.ok(ids.get(path).has(decodeURIComponent(hash.slice(1))), `${page}: ${address}`);
    }
  }
});

test('every name has one place on its page', () => {
  for (const page of pages) {
    const all = [...read(page).matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
    assert.deepEqual(all.filter((id, i) => all.indexOf(id) !== i), [], page);
  }
});

test('no page asks another server for anything, or has a script or style in it', () => {
  for (const page of pages) {
    const html = read(page);
    assert.doesNotMatch(html, /<(?!a\b)[a-z]+[^>]*\s(?:href|src|srcset|poster|action|data)="(?:[a-z]+:)?\/\//, page);
    assert.doesNotMatch(html, /<script(?![^>]*\ssrc=)|<style|\sstyle="|\son[a-z]+="/, page);
    assert.match(html, /default-src 'none'/);
  }
  assert.doesNotMatch(read('docs.css'), /url\((?!["']?data:)|@import/);
});

test('the reference has every entry of the package that has types, and everything that it declares', () => {
  const { exports } = JSON.parse(source('package.json'));
  const entries = Object.entries(exports).filter(([name, { types }]) => types && name !== '.').map(([name]) => name.slice(2));
  assert.ok(entries.length >= 6);
  for (const entry of entries) {
    assert.ok(pages.includes(`reference/${entry}.html`), entry);
    const here = ids.get(`reference/${entry}.html`);
    for (const [, name] of source(`js/${entry}.d.ts`).matchAll(/^export (?:declare )?(?:interface|type|function|class|const) (\w+)/gm)) assert.ok(here.has(name), `${entry}: ${name}`);
    assert.match(read(`reference/${entry}.html`), new RegExp(`from 'quern/${entry}'|quern/${entry}`));
  }
});

test('the search finds what people know by another name', () => {
  const index = JSON.parse(read('search.json'));
  const expected = {
    'function calling': 'Tools', zod: 'Zod and TypeBox: typed replies', pwa: 'PWA: installed, offline, and what is stored', useChat: 'useChat in the page',
    max_new_tokens: 'CompleteOptions.maxTokens', cancel: 'Start here: Stop', privacy: 'Privacy: what leaves the machine', top_k: 'CompleteOptions.topK', PWA: 'PWA: installed, offline, and what is stored',
    'json mode': 'CompleteOptions.schema', n_ctx: 'LoadOptions.contextSize', rag: 'Worker RAG: search and answer beside the page', 'quern/run': 'quern/run',
  };
  assert.deepEqual(Object.fromEntries(Object.keys(expected).map((query) => [query, find(index, query)[0]?.title])), expected);
  for (const [query, name] of MEANS) assert.ok(find(index, query).length > 0 && find(index, name).length + index.filter(({ title }) => title === name).length > 0, `${query}: ${name}`);
});

test('the search finds options, errors and recipes by what people type', () => {
  const index = JSON.parse(read('search.json'));
  const first = (query) => find(index, query)[0]?.title;
  const expected = {
    contextSize: 'LoadOptions.contextSize', 'context size': 'LoadOptions.contextSize', topP: 'CompleteOptions.topP', kv: 'LoadOptions.kv', 'mem/plan': 'mem/plan',
    react: 'React', load: 'load', dispose: 'Model.dispose', 'service worker': 'A service worker for the headers', QuernError: 'QuernError',
  };
  assert.deepEqual(Object.fromEntries(Object.keys(expected).map((query) => [query, first(query)])), expected);
  assert.ok(find(index, 'offline').length > 0);
  assert.deepEqual([find(index, 'zzzz'), find(index, '  ')], [[], []]);
  for (const query of ['([', '\\', '.*']) assert.doesNotThrow(() => find(index, query));
  for (const { href } of index) assert.ok(existsSync(join(site, href.split('#')[0])), href);
});

// --- recipes ---

const RECIPES = join(PROJECT, 'docs/recipes');

/** Code of a Markdown file: {language, name, code, line}. */
function blocksOf(path) {
  const text = source(path);
  return [...text.matchAll(/^```(\w+)(?: (\S+))?\n([\s\S]*?)^```$/gm)].map(([, language, name, code, ], i) => ({ path, i, language, name, code }));
}

const all = () => ['README.md', 'docs/start.md', 'docs/errors.md', ...readdirSync(RECIPES).map((name) => `docs/recipes/${name}`)].flatMap(blocksOf);

const scriptOf = ({ language, code }) => (['html', 'vue', 'svelte'].includes(language) ? /<script[^>]*>([\s\S]*?)<\/script>/.exec(code)?.[1] ?? '' : code);

const CODE = ['js', 'jsx', 'ts', 'tsx', 'html', 'vue', 'svelte'];

/** @returns {'jsx' | 'tsx' | 'ts'} */
const loaderOf = ({ language }) => (language === 'jsx' || language === 'tsx' ? language : 'ts');

test('every recipe is listed, and every piece of its code parses', async () => {
  const listed = [...source('docs/recipes/README.md').matchAll(/\]\((.*?\.md)\)/g)].map(([, name]) => name);
  assert.deepEqual(listed.sort(), readdirSync(RECIPES).filter((name) => name !== 'README.md').sort());
  for (const block of all()) {
    const where = `${block.path}, ${block.name ?? `block ${block.i + 1}`}`;
    if (block.language === 'json') assert.doesNotThrow(() => JSON.parse(block.code), where);
    if (!CODE.includes(block.language)) continue;
    await transform(scriptOf(block), { loader: loaderOf(block), format: 'esm', logLevel: 'silent' }).catch((error) => assert.fail(`${where}: ${error.message}`));
  }
});

/** What stands around the recipes and is not ours: as much of it as they use. */
const AMBIENT = `
declare module 'vue'; declare module 'svelte'; declare module 'electron'; declare module '@vitejs/plugin-vue'; declare module 'node:*';
declare module 'https://*' { export * from 'quern'; }
declare const chrome: any, process: any, $props: any, $state: any, defineProps: any;
interface ImportMeta { dirname: string }`;

const TYPED = `
declare module 'react' {
  type Next<T> = T | ((before: T) => T);
  export function useState<T>(initial: T | (() => T)): [T, (next: Next<T>) => void];
  export function useEffect(effect: () => void | (() => void), dependencies?: readonly unknown[]): void;
  export function useMemo<T>(make: () => T, dependencies: readonly unknown[]): T;
  export interface FormEvent<Form> { readonly currentTarget: Form; preventDefault(): void }
}
declare module 'node:*';
declare module '@ai-sdk/react' {
  import type { ChatTransport, UIMessage } from 'ai';
  export function useChat(options: { transport: ChatTransport<UIMessage<unknown, never, {}>> }): {
    messages: UIMessage[]; status: 'submitted' | 'streaming' | 'ready' | 'error'; error: Error | undefined;
    sendMessage(message: { text: string }): Promise<void>; stop(): Promise<void>;
  };
}
declare module '@sveltejs/kit' { export type Handle = (given: { event: unknown; resolve(event: unknown): Promise<Response> }) => Promise<Response> }
declare module '@sinclair/typebox' { export type Static<T> = any; export const Type: any; }
declare module 'express' {
  export interface Request { body: any }
  export interface Response {
    on(name: 'close', heard: () => void): void; type(name: string): Response; status(code: number): Response; write(text: string): void; end(): void; destroy(): void;
    readonly headersSent: boolean;
  }
  interface App { use(what: unknown): void; post(path: string, answer: (request: Request, response: Response) => void): void; listen(port: number): void }
  function express(): App;
  namespace express { function json(options: { limit: string }): unknown }
  export default express;
}
declare const process: { env: Record<string, string | undefined>; argv: string[]; exitCode?: number };
declare namespace JSX {
  interface Attributes {
    onSubmit?: (event: any) => void; onClick?: () => void; onChange?: (event: { currentTarget: { value: string } }) => void;
    [name: string]: unknown;
  }
  interface IntrinsicElements { [name: string]: Attributes }
  interface IntrinsicAttributes { key?: unknown }
}`;

const isTyped = ({ language }) => ['ts', 'tsx'].includes(language);

/** A worker of the browser's own has other globals than a page, and says so in its first line. */
const isService = ({ code }) => code.startsWith('/// <reference lib="webworker" />');

const files = () => all().filter(({ name, language }) => name && CODE.includes(language));

const pathIn = (to, { path, name }) => join(to, path.replace(/\.md$/, ''), name.replace(/\.(html|vue|svelte)$/, '.$1.js'));

function writeFiles(to, blocks, textOf) {
  for (const block of blocks) {
    const path = pathIn(to, block);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, textOf(block));
  }
}

/** Writes each recipe's files into a folder of its own, as what can run: TypeScript without its types. */
async function writeRecipes(to) {
  const made = new Map();
  for (const block of files()) {
    const { code } = isTyped(block) ? await transform(block.code, { loader: loaderOf(block), format: 'esm' }) : { code: scriptOf(block) };
    made.set(block, code.replace(/(from "\.[^"]*\/[^"./]+)"/g, '$1.js"'));    // bundlers find files without that
  }
  writeFiles(to, [...made.keys()].map((block) => ({ ...block, name: block.name.replace(/\.tsx?$/, '.js'), made: made.get(block) })), (block) => block.made);
}

/** What TypeScript says of files in a folder. */
async function problems(to, options, ambient) {
  const entries = ['run', 'remote', 'openai', 'ai-sdk', 'prompt-api', 'testing'].map((name) => [`quern/${name}`, [join(PROJECT, `js/${name}.d.ts`)]]);
  const foreign = ['openai', 'ai', 'zod'].map((name) => [name, [join(PROJECT, 'node_modules', name)]]);
  mkdirSync(to, { recursive: true });
  writeFileSync(join(to, 'ambient.d.ts'), ambient);
  writeFileSync(join(to, 'tsconfig.json'), JSON.stringify({
    compilerOptions: {
      noEmit: true, skipLibCheck: true, jsx: 'preserve', target: 'esnext', module: 'esnext', moduleResolution: 'bundler', moduleDetection: 'force', types: [],
      lib: ['esnext', 'dom', 'dom.iterable', 'dom.asynciterable'], paths: { quern: [join(PROJECT, 'js/index.d.ts')], ...Object.fromEntries([...entries, ...foreign]) }, ...options,
    },
    include: ['.'],
  }));
  const tsc = join(PROJECT, 'node_modules/typescript/bin/tsc');
  const output = await new Promise((done) => { execFile(process.execPath, [tsc, '-p', to], (error, stdout) => done(error ? stdout || String(error) : '')); });
  return output.split(/^(?=\S)/m).filter(Boolean);
}

test('every file of a recipe in TypeScript compiles under strict, with all types there are', async () => {
  const typed = files().filter(isTyped);
  assert.ok(typed.length > 12, String(typed.length));
  const [services, pagesOf] = [typed.filter(isService), typed.filter((block) => !isService(block))];
  const [inPages, inServices] = [join(folder, 'typed'), join(folder, 'services')];
  writeFiles(inPages, pagesOf, ({ code }) => code);
  writeFiles(inServices, services, ({ code }) => code);
  assert.deepEqual(await problems(inPages, { strict: true }, TYPED), []);
  assert.deepEqual(await problems(inServices, { strict: true, lib: ['esnext'] }, ''), []);
});

test('every other file of a recipe fits the types, but for what is caught, which may be anything there', async () => {
  const to = join(folder, 'loose');
  writeFiles(to, files().filter((block) => !isTyped(block)), scriptOf);
  const beside = join(to, 'docs/recipes/extension/quern');
  mkdirSync(beside, { recursive: true });
  writeFileSync(join(beside, 'index.d.ts'), source('js/index.d.ts'));
  assert.deepEqual(await problems(to, { allowJs: true, checkJs: true, strict: true, useUnknownInCatchVariables: false }, AMBIENT), []);
});

/** A recipe's file as a module. */
const recipe = async (path) => import(pathToFileURL(join(running, path)).href);

test('the recipes of typed replies, of useChat and of routes do as they say', async () => {
  await writeRecipes(running);
  const city = { name: 'Oslo', country: 'Norway', inhabitants: 717_710 };
  const { cityIn } = await recipe('docs/recipes/zod/zod.js');
  assert.deepEqual(await cityIn(fakeModel(() => JSON.stringify(city)), 'It lies on a fjord.'), city);
  await assert.rejects(cityIn(fakeModel({ text: '{"name":', finishReason: 'length' }), 'x'), { name: 'ZodError' });

  const { transportOf } = await recipe('docs/recipes/use-chat/transport.js');
  const transport = transportOf(fakeModel('A mill by the river.'));
  const messages = [{ id: '1', role: 'user', parts: [{ type: 'text', text: 'What is it?' }] }];
  const stream = await transport.sendMessages({ trigger: 'submit-message', chatId: '1', messageId: undefined, messages, abortSignal: undefined });
  const pieces = await collect(stream);
  assert.equal(pieces.filter(({ type }) => type === 'text-delta').map(({ delta }) => delta).join(''), 'A mill by the river.');

  globalThis.quernModel = Promise.resolve(fakeModel('Yes.'));
  try {
    const { POST } = await recipe('docs/recipes/routes/app/v1/chat/completions/route.js');
    const body = JSON.stringify({ model: 'x', messages: [{ role: 'user', content: 'Well?' }] });
    const answer = await POST(new Request('http://localhost/v1/chat/completions', { method: 'POST', body }));
    assert.deepEqual([answer.status, (await answer.json()).choices[0].message.content], [200, 'Yes.']);
  } finally {
    delete globalThis.quernModel;
  }
});

test('the store of the recipe keeps a model', async () => {
  await writeRecipes(running);
  const { MemoryStore } = await recipe('docs/recipes/store/memory-store.js');
  const { url, close } = await serve({ root: join(PROJECT, 'web/models') });
  const cache = new MemoryStore();
  const loads = [];
  for (let i = 0; i < 2; i++) {
    const model = await load(`${url}demo-q8_0.gguf`, { store: cache, threads: 1, onProgress: ({ cached, loaded, total }) => { if (loaded === total) loads[i] = cached; } });
    await model.dispose();
    if (i === 0) await close();
  }
  assert.deepEqual(loads, [false, true]);
  assert.deepEqual((await models.list({ store: cache })).map(({ complete }) => complete), [true]);
});

test('the recipes of saved conversations go on in another model', async () => {
  await writeRecipes(running);
  const cache = join(folder, 'kept');
  const [{ library }, { Talk }] = [await recipe('docs/recipes/save/document.js'), await recipe('docs/recipes/save/talk.js')];
  const text = 'The mill stands by the river. '.repeat(20);
  const known = [];
  for (let i = 0; i < 2; i++) {
    const model = await load(join(PROJECT, 'web/models/demo-q8_0.gguf'), { threads: 1, store: cache });
    const { ask, forget } = library(model, 'mill', text);
    const { usage } = await ask('Where is it?').result;
    const talk = new Talk(model, 'talk');
    known.push(usage.cachedTokens, (await talk.ask(text)).known);
    assert.equal(talk.messages.length, 2);
    assert.deepEqual((await model.saved()).map(({ name }) => name).sort(), ['mill', 'talk']);
    if (i === 1) await Promise.all([forget(), talk.remove()]);
    assert.equal((await model.saved()).length, i === 1 ? 0 : 2);
    await model.dispose();
  }
  assert.ok(known[2] > 100 && known[3] > 100, known.join());
});

test('the recipes of many replies at once do as they say', async () => {
  await writeRecipes(running);
  const questions = ['What is the capital of France?', 'Hi there, how are you today?', 'What is the opposite of big?'];
  const model = await load(join(PROJECT, 'web/models/demo-q8_0.gguf'), { threads: 1, parallel: 2 });
  const shown = questions.map(() => '');
  const answers = await (await recipe('docs/recipes/parallel/ask-all.js')).askAll(model, questions, (i, text) => { shown[i] += text; });
  assert.deepEqual(answers, shown);
  assert.ok(answers.every(Boolean));
  const { titleOf } = await recipe('docs/recipes/parallel/background.js');
  assert.ok((await titleOf(model, [{ role: 'user', content: questions[0] }])).length > 0);
  const { askPatiently } = await recipe('docs/recipes/parallel/patiently.js');
  const full = Array.from({ length: 66 }, () => model.complete('the', { maxTokens: 20 }).result);
  const [{ text }] = await Promise.all([askPatiently(model, 'Hi', { maxTokens: 3 }), ...full]);
  assert.ok(text.length > 0);
  await model.dispose();
});

test('the loop over events shows what there is to show of every kind of them, and compiles under strict', async () => {
  const [loop] = /^for await \(const \{ type, text \} of reply\.events\)(?: \{\n[\s\S]*?^\}|.*?;)/m.exec(source('docs/recipes/thinking.md'));
  const city = { type: 'object', properties: { city: { enum: ['Oslo'] } }, required: ['city'] };
  const messages = Array.from({ length: 300 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: `What is the capital of country ${i}?` })).slice(0, 299);
  const model = await load(join(PROJECT, 'web/models/demo-q8_0.gguf'), { threads: 1 });
  const given = model.chat(messages, { overflow: 'drop', tools: [{ name: 'weather', parameters: city }], toolChoice: 'required', maxTokens: 60 });
  const kinds = new Set();
  const events = { async* [Symbol.asyncIterator]() { for await (const event of given.events) { kinds.add(event.type); yield event; } } };
  const shown = () => ({ text: '', append(piece) { this.text += piece; } });
  const [out, aside] = [shown(), shown()];
  await Object.getPrototypeOf(async () => {}).constructor('reply', 'out', 'aside', loop)({ events }, out, aside);
  const { text, thinking } = await given.result;
  assert.deepEqual([out.text, aside.text], [text, thinking]);
  for (const kind of ['dropped', 'tool-call-start', 'tool-call-delta', 'tool-call']) assert.ok(kinds.has(kind), kind);
  const file = join(folder, 'loop.ts');
  writeFileSync(file, `import type { Reply } from '${join(PROJECT, 'js/index.js')}';\nimport type { RunReply } from '${join(PROJECT, 'js/run.js')}';\ndeclare const reply: Reply | RunReply, out: Text, aside: Text;\ninterface Text { append(text: string): void }\n${loop}\n`);
  const tsc = ['node_modules/typescript/bin/tsc', '--noEmit', '--strict', '--target', 'esnext', '--module', 'esnext', '--moduleResolution', 'bundler', '--moduleDetection', 'force', '--lib', 'esnext,dom', '--types', '', file];
  assert.equal(await new Promise((done) => { execFile(process.execPath, tsc, { cwd: PROJECT }, (error, said) => done(error ? said : '')); }), '');
  await model.dispose();
});
