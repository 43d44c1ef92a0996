// SPDX-License-Identifier: MIT
// `npm run bench -- --only drafts`: what drafts gain, beside the same build without them, in turn. So that it is known which drafts are right, replies
// about edited texts are written by a model whose every token follows from the last one (`followingModel`), with the speed of Qwen3-0.6B: parts of
// its text stand in the prompt, the rest of it was changed there. Beside each figure stands what the best choice of drafts could have gained, from the
// times of steps with so many rows in the same run. The report is drafts.md and drafts.json.
//
//   node tests/bench/bench.mjs --only drafts [--types q8_0,q4_k_m] [--engines quern,node,native] [--repeat 3] [--out DIR]
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { serve } from '../../tools/serve.mjs';
import { baseVocab } from '../fixtures/qwen-vocab.mjs';
import { Child } from './child.mjs';
import { PROJECT, bigModel, chain, followingModel } from './fixtures.mjs';
import { describeMachine, loadAverage, machineLine } from './machine.mjs';
import { hasNative, nativeCommand, packagedVersion } from './native.mjs';
import { median, table } from './report.mjs';
import { Tab } from './tab.mjs';

const NAMES = { node: 'Node', quern: 'Chromium' };
const OPEN = { quern: (base) => Tab.open(base, 'tests/bench/page/drafts.js'), node: () => Child.open('tests/bench/node/drafts.mjs') };

const THREADS = 2;
const PROMPT = 1000;        // tokens of an edited text
const REPLY = 200;
const ROWS = [1, 2, 3, 4, 5, 6, 7, 8];
const MOST = ROWS.at(-1);
const KNOWN_AFTER = 2;      // tokens of a copied run are written before it is looked up

/** Copied and changed tokens in turn: runs of `copied`, then `changed`. `goal`: how many times as fast. */
const EDITS = {
  '90 % copied': { copied: 90, changed: 10, goal: 1.8 },
  '70 % copied': { copied: 28, changed: 12, goal: 1.4 },
  '50 % copied': { copied: 20, changed: 20, goal: 1.15 },
};

const PROSE = 'Once upon a time there was a small mill by the river';
const word = { type: 'string', pattern: '^[a-z]{3,8}$' };
const SCHEMA = {
  type: 'object', additionalProperties: false,
  properties: {
    customerName: word, orderNumber: { type: 'integer', minimum: 1, maximum: 999 }, productCategory: { enum: ['books', 'music', 'tools'] },
    quantityOrdered: { type: 'integer', minimum: 1, maximum: 99 }, unitPriceInCents: { type: 'integer', minimum: 1, maximum: 9999 },
    isExpressDelivery: { type: 'boolean' }, paymentMethod: { enum: ['card', 'invoice', 'transfer'] }, deliveryCity: word,
    isGiftWrapped: { type: 'boolean' }, customerLanguage: { enum: ['English', 'German', 'Spanish'] },
  },
};
SCHEMA.required = Object.keys(SCHEMA.properties);

/** A draft model of about an eighth of the weights that a step of Qwen3-0.6B reads, most of them in the output head as in real ones. */
const SMALL = { hidden: 256, ffn: 2048, heads: 4, kvHeads: 2, layers: 16 };
const DIFFERS = 0.3;

/** Which of the reply's tokens stand in the prompt. */
const isCopied = ({ copied, changed }, i) => i % (copied + changed) < copied;

/** The text in the prompt, and before the reply the word that it follows. Other words than the reply's stand for what was changed. */
function editedPrompt(edit, ids, at) {
  const other = (i) => ids[(at + 2 * PROMPT + 7 * i) % ids.length];
  const text = Array.from({ length: PROMPT }, (_, i) => (isCopied(edit, i) ? ids[(at + i) % ids.length] : other(i)));
  return [...text, ids[(at - 1 + ids.length) % ids.length]];
}

/**
 * How many times as fast the reply could be written: by whoever knew beforehand which drafts are right, and took the number that is best.
 * @param {(i: number) => boolean} isKnown whether token i can be drafted @param {Record<number, number>} ms of a step, by its rows
 */
function bestGain(isKnown, ms) {
  const least = [0];      // time of the first i tokens
  for (let end = 1; end <= REPLY; end++) {
    least[end] = Infinity;
    for (let rows = 1; rows <= Math.min(MOST, end); rows++) {
      // A step that writes these tokens: the first is its own, the others are drafts.
      if (rows > 1 && !isKnown(end - rows + 1)) break;
      least[end] = Math.min(least[end], least[end - rows] + ms[rows]);
    }
  }
  return REPLY * ms[1] / least[REPLY];
}

/** The same for drafts of which each is right in a share of cases, if the one before it is, and which take no time themselves. */
function bestGuessed(share, ms) {
  let [best, tokens, right] = [1, 1, 1];
  for (let rows = 2; rows <= MOST; rows++) {
    tokens += right *= share;
    best = Math.max(best, tokens * ms[1] / ms[rows]);
  }
  return best;
}

const isLookedUp = (edit) => (i) => isCopied(edit, i) && i % (edit.copied + edit.changed) >= KNOWN_AFTER;

const mean = (values) => values.reduce((all, value) => all + value, 0) / values.length;

/** The means of what was found in both orders; of gains the geometric one. */
const together = (all) => Object.fromEntries(Object.keys(all[0]).map((key) => {
  const values = all.map((one) => one[key]);
  if (key === 'gains') return [key, values.flat()];
  return [key, key === 'gain' ? Math.sqrt(values[0] * values[1]) : mean(values)];
}));

/** The tokens in which this JSON is usually written, preferred as trained models do, longer ones more; random weights know no words. */
function usualTokens() {
  const { tokens } = baseVocab();
  const idOf = new Map(tokens.map((token, id) => [token, id]));
  const parts = Object.keys(SCHEMA.properties).flatMap((name) => name.match(/[a-z]+|[A-Z][a-z]*/g));
  const known = ['{"', '":', '":"', '","', ',"', 'C', 'ents', ...parts].filter((part) => idOf.has(part));
  return Object.fromEntries(known.map((part) => [idOf.get(part), 40 + 5 * part.length]));
}

/** One reply with drafts and one without, which must be equal. @returns {Promise<{gain: number, drafted: number, right: number, tokens: number}>} */
async function pair(session, ask, isSwapped) {
  const got = {};
  for (const name of isSwapped ? ['with', 'without'] : ['without', 'with']) got[name] = await session.call('reply', { name, ...ask });
  if (got.with.text !== got.without.text) throw new Error(`drafts have changed a text: ${got.with.text} is not ${got.without.text}`);
  const { draftedTokens = 0, acceptedTokens = 0, completionTokens, prefillMs } = got.with;
  return {
    gain: got.with.tokensPerSecond / got.without.tokensPerSecond, prefill: prefillMs / got.without.prefillMs, alone: got.without.tokensPerSecond,
    drafted: draftedTokens, right: acceptedTokens, tokens: completionTokens,
  };
}

/** Pairs in turn, after one that only warms up. */
async function pairs(session, repeat, ask) {
  const found = [];
  for (let round = 0; round <= repeat; round++) found.push(await pair(session, ask(round), round % 2 === 1));
  const [first, ...rest] = found;
  const middle = (key) => median(rest.map((one) => one[key]));
  console.error(`  ${JSON.stringify(found)}`);
  return { ...Object.fromEntries(Object.keys(first).map((key) => [key, middle(key)])), gains: rest.map(({ gain }) => gain) };
}

async function measureQuern(base, engine, type, repeat) {
  const session = await OPEN[engine](base);
  const place = (path) => (engine === 'node' ? join(PROJECT, path) : new URL(`/${path}`, base).href);
  const common = { threads: THREADS, contextSize: 2048, parallel: MOST };
  // What is loaded first is slower by some percent, whatever it is, so everything is measured in both orders.
  const inBothOrders = async (path, how, measure) => {
    const orders = [];
    for (const names of [['with', 'without'], ['without', 'with']]) {
      for (const name of names) await session.call('load', { name, source: place(path), ...common, ...(name === 'with' ? how : { drafts: false }) });
      orders.push(await measure());
      await session.call('dispose');
    }
    return orders;
  };
  const found = { version: session.version, load: loadAverage(), edits: {} };
  try {
    const ids = chain();
    const texts = Object.entries(EDITS).map(([name, edit]) => [name, edit, editedPrompt(edit, ids, 0)]);
    const edits = await inBothOrders(followingModel(type), {}, async () => {
      // First, while both models are equally new: V8 still optimises their code.
      const first = await pairs(session, repeat, (round) => ({ prompt: ids.slice(300 * round, 300 * round + 256), maxTokens: 1 }));
      const rows = await session.call('rows', { name: 'without', prompt: texts[0][2], counts: ROWS, rounds: repeat, generate: 16 });
      const one = { rows, first };
      for (const [name, , prompt] of texts) one[name] = await pairs(session, repeat, () => ({ prompt, maxTokens: REPLY, temperature: 0 }));
      return one;
    });
    found.rows = Object.fromEntries(ROWS.map((n) => [n, mean(edits.map(({ rows }) => median(rows[n])))]));
    found.first = together(edits.map(({ first }) => first));
    for (const [name, edit] of texts) found.edits[name] = { ...together(edits.map((one) => one[name])), best: bestGain(isLookedUp(edit), found.rows) };
    const random = await inBothOrders(bigModel(type), {}, async () => ({
      json: await pairs(session, repeat, (round) => ({ prompt: 'The order as JSON: ', schema: SCHEMA, logitBias: usualTokens(), maxTokens: 300, seed: round, temperature: 1 })),
      prose: await pairs(session, 3 * repeat, (round) => ({ prompt: PROSE, maxTokens: 100, seed: round, temperature: 0.7 })),
    }));
    for (const key of ['json', 'prose']) found[key] = together(random.map((one) => one[key]));
    const draft = { draft: place(followingModel(type, DIFFERS, SMALL)) };
    const drafted = together(await inBothOrders(followingModel(type), draft,
      () => pairs(session, repeat, (round) => ({ prompt: ids.slice(400 * round, 400 * round + 20), maxTokens: REPLY, temperature: 0 }))));
    found.draft = { ...drafted, best: bestGuessed(1 - DIFFERS, found.rows) };
    return found;
  } finally {
    await session.close();
  }
}

// --- llama.cpp, with its look-up and its draft model ---

async function measureNative(type, repeat) {
  const { tokens } = baseVocab();
  const ids = chain();
  const text = (list) => list.map((id) => tokens[id].replace('Ġ', ' ')).join('');
  const common = ['-m', join(PROJECT, followingModel(type)), '-t', String(THREADS), '-c', '2048', '--temp', '0', '-fa', 'on'];
  const speed = async (program, args) => {
    const { command, args: all, cwd } = nativeCommand(program, [...common, ...args]);
    const { stdout, stderr } = await promisify(execFile)(command, all, { cwd, maxBuffer: 2 ** 28 });
    const said = stdout + stderr;
    const found = /decoded +\d+ tokens in +[\d.]+ seconds, speed: +([\d.]+)/.exec(said) ?? /(?<!prompt) eval time = .*?([\d.]+) tokens per second\)\s*$/m.exec(said);
    if (!found) throw new Error(`${program} said nothing of its speed: ${said.slice(-1000)}`);
    return Number(found[1]);
  };
  const gains = async (program, more, ask) => {
    const found = [];
    for (let round = 1; round <= repeat; round++) {
      const args = ['-p', text(ask(round)), '-n', String(REPLY)];
      const alone = await speed('llama-completion', [...args, '-no-cnv', '--no-display-prompt', '--perf', '--ignore-eos']);
      found.push(await speed(program, [...args, ...more]) / alone);
    }
    return median(found);
  };
  const edits = {};
  for (const [name, edit] of Object.entries(EDITS)) edits[name] = { gain: await gains('llama-lookup', ['--spec-draft-n-max', '7'], (round) => editedPrompt(edit, ids, 400 * round)) };
  const draft = { gain: await gains('llama-speculative-simple', ['--spec-type', 'draft-simple', '-md', join(PROJECT, followingModel(type, DIFFERS, SMALL)), '--spec-draft-n-max', '7'], (round) => ids.slice(400 * round, 400 * round + 20)) };
  return { version: packagedVersion(), load: loadAverage(), edits, draft };
}

// --- the report ---

const times = (value) => (value === undefined ? '' : value.toFixed(2));

function typeTable(type, found) {
  const engines = Object.keys(found).filter((engine) => engine !== 'native');
  const { native } = found;
  const heads = ['', 'goal', ...engines.flatMap((engine) => [NAMES[engine], 'best possible', 'share', 'drafts right']), ...(native ? ['llama.cpp'] : [])];
  const row = (name, goal, pick) => [name, goal.toString(), ...engines.flatMap((engine) => {
    const one = pick(found[engine]);
    return [times(one.gain), times(one.best), one.best ? times(one.gain / one.best) : '', `${one.right} of ${one.drafted}`];
  }), ...(native ? [times(pick(native)?.gain)] : [])];
  const rows = [
    ...Object.entries(EDITS).map(([name, { goal }]) => row(name, goal, ({ edits }) => edits[name])),
    row('JSON, ten members', 1.7, ({ json }) => json), row('prose', 0.97, ({ prose }) => prose), row('a draft model', 1.25, ({ draft }) => draft),
  ];
  const costs = engines.map((engine) => `${NAMES[engine]}: ${ROWS.map((n) => times(found[engine].rows[n] / found[engine].rows[1])).join(', ')} (one row: ${found[engine].rows[1].toFixed(1)} ms); a prompt of 256 tokens is read in ${times(found[engine].first.prefill)} of the time without drafts`);
  return `## ${type.toUpperCase()}\n\n${table(heads, rows)}\nSteps of 1 to ${MOST} rows: ${costs.join('; ')}.\n`;
}

function report({ machine, repeat, found }) {
  const loads = Object.values(found).flatMap((engines) => Object.values(engines).map(({ load }) => load));
  const native = Object.values(found)[0].native;
  return `# Drafts

Made by \`npm run bench -- --only drafts\`; drafts.json has every figure. ${machineLine(machine)}. The machine's load was ${Math.min(...loads)} to ${Math.max(...loads)}.
How many times as fast replies are written as by the same build with \`drafts: false\`, ${THREADS} threads, Qwen3-0.6B's dimensions, medians of ${repeat} pairs in turn (prose: ${3 * repeat}); the texts of each pair are equal. Edited texts have ${PROMPT} tokens, the replies ${REPLY}.
"Best possible": by whoever knows which drafts are right and always takes the best number of them, from the times of steps with so many rows over the same prompt in the same run; of the draft model, if its drafts took no time. The draft model has an eighth of the weights and agrees with ${100 * (1 - DIFFERS)} % of the tokens.
${native ? `llama.cpp ${native.version}: llama-lookup and llama-speculative-simple beside llama-completion, each its own gain.\n` : ''}
${Object.entries(found).map(([type, engines]) => typeTable(type, engines)).join('\n')}`;
}

export async function measureDrafts() {
  const text = { type: 'string' };
  const { values } = parseArgs({ options: { only: text, types: text, engines: text, repeat: text, out: text } });
  const { types = 'q8_0,q4_k_m', engines = 'quern,node,native', repeat = '3', out = 'docs/benchmarks' } = values;
  const names = engines.split(',').filter((name) => name !== 'native' || hasNative());
  const unknown = names.filter((name) => name !== 'native' && !NAMES[name]);
  if (unknown.length) throw new Error(`--engines: ${unknown} is none of ${[...Object.keys(NAMES), 'native']}`);
  const server = await serve({ root: PROJECT, csp: false });
  const folder = join(PROJECT, out);
  mkdirSync(folder, { recursive: true });
  const found = {};
  try {
    for (const engine of names) {
      for (const type of types.split(',')) {
        found[type] ??= {};
        found[type][engine] = await (engine === 'native' ? measureNative(type, Number(repeat)) : measureQuern(server.url, engine, type, Number(repeat)));
        keep(folder, found, Number(repeat));
      }
    }
  } finally {
    await server.close();
  }
}

/** Writes what was found so far: a whole run takes an hour. */
function keep(folder, found, repeat) {
  const browser = Object.values(found).map(({ quern }) => quern?.version).find(Boolean) ?? '';
  const all = { machine: describeMachine(browser), repeat, found };
  const round = (key, value) => (typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(5)) : value);
  writeFileSync(join(folder, 'drafts.json'), `${JSON.stringify(all, round, 1)}\n`);
  writeFileSync(join(folder, 'drafts.md'), report(all));
  console.log(report(all));
}
