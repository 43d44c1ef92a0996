// SPDX-License-Identifier: MIT
// A model that answers from a script, for tests of programs that use a model: no wasm, no file, no download. It checks
// its arguments as a real one does, and its replies have the same events in the same order. A token is a word with the
// space before it.

import { abortable } from '../shared/clock.js';
import { callable } from '../shared/called.js';
import { QuernError, badParam } from '../shared/errors.js';
import { checkMessages } from '../page/messages.js';
import { checkName, checkOptions, checkTokens, checkText, sampling } from '../page/options.js';
import { judged } from '../page/standard.js';
import { checkPart } from '../page/parts.js';
import { Reply } from '../page/reply.js';
import { isRecord } from '../shared/kinds.js';
import { embed, rank } from '../page/vectors.js';
import { checkAnswer, checkAsked } from './testing-contract.js';
import { Writing } from './testing-reply.js';
import { rankOf, vectorOf } from './testing-vectors.js';

const CARD = { temperature: 0.7, topP: 0.8, topK: 20, minP: 0 };

/** Info of the fake model. */
const INFO = {
  name: 'fake',
  architecture: 'qwen3',
  marks: 'qwen',
  callForm: 'json',
  takesVision: false,
  format: 'gguf',
  layers: 1,
  dim: 64,
  vocabSize: 65_536,
  tokens: 65_536,
  endTokens: [0],
  added: { before: [], after: [] },
  specialTokens: {},
  contextLength: 4096,
  contextSize: 4096,
  chatTemplate: true,
  thinking: true,
  pooling: -1,
  classes: 0,
  headless: false,
  vectors: { described: false, normalize: true, refused: '' },
  parallel: 16,
  kvPositions: 4096,
  stateBytes: 0,
  drafts: false,
  snapshots: 0,
  vision: null,
  sampling: {},
  card: { plain: CARD, thinking: CARD, images: CARD },
  threads: 1,
};

const ANSWER = ['text', 'thinking', 'toolCalls', 'finishReason', 'error', 'pauseMs'];

const wordsOf = (text) => text.match(/\s*\S+|\s+$/g) ?? [];
const textIn = (content) => (typeof content === 'string' ? content : content.map(({ text = '' }) => text).join(''));

/** The text of the messages, without a template. */
const written = (input) => (Array.isArray(input) ? input.map(({ content }) => textIn(content)).join('\n') : input);

/** A complete answer from the script. */
function answerOf(given) {
  if (typeof given === 'string') return { text: given };
  if (given instanceof Error) return { error: given };
  const strange = isRecord(given) ? Object.keys(given).find((key) => !ANSWER.includes(key)) : '';
  if (strange === undefined) return given;
  throw new TypeError(
    `An answer of fakeModel() must be a text, an error, or an object of ${ANSWER.join(', ')}${strange && `, not ${strange}`}.`,
  );
}

class FakeModel {
  #script;
  #words = ['<end>'];           // by their ids
  #ids = new Map();
  #saved = new Map();
  #over = new AbortController();

  /** The calls so far, in order: `{ kind, input, options }`. */
  calls = [];

  constructor(script, info) {
    this.#script = script;
    this.info = Object.freeze({ ...INFO, ...info });
  }

  chat(messages, options) {
    return this.#reply('chat', options, (checked) =>
      checkMessages(messages, checked.continue, this.info.vision ? checkPart : undefined),
    );
  }

  complete(prompt, options) {
    const { tokens } = this.info;
    return this.#reply('complete', options, () =>
      typeof prompt === 'string' ? prompt : this.#textOf(checkTokens(prompt, tokens, 'prompt')),
    );
  }

  async tokenize(input, options) {
    const checked = checkOptions('tokens', options);
    const given = Array.isArray(input)
      ? checkMessages(input, false, this.info.vision ? checkPart : undefined)
      : checkText(input);
    this.#check(checked);
    if (Array.isArray(given)) await checkAsked(given, checked, this.info);
    const text = written(given);
    return wordsOf(typeof text === 'string' ? text : new TextDecoder().decode(text)).map((word) => this.#idOf(word));
  }

  async detokenize(tokens, options) {
    const { bytes, ...checked } = checkOptions('detokenize', options);
    this.#check(checked);
    const ids = checkTokens(tokens, this.info.tokens);
    return bytes ? Array.from(ids, (id) => new TextEncoder().encode(this.#textOf([id]))) : this.#textOf(ids);
  }

  async countTokens(input, options) { return (await this.tokenize(input, options)).length; }

  /** All scores are 0: a test that needs scores needs a model. */
  async logits(input, options) {
    const n =
      Array.isArray(input) && isRecord(input[0])
        ? await this.countTokens(input, options)
        : checkTokens(input, this.info.tokens).length;
    return new Float32Array(n * this.info.vocabSize);
  }

  embed(texts, options) {
    return embed(
      this.info,
      async (
        { texts: list, options: { dimensions = this.info.dim, normalize = true, instruction } },
        { signal, onEvent },
      ) => {
        this.#check({ signal });
        const all = list.map((text) => (typeof text === 'string' ? text : this.#textOf(text)));
        this.calls.push({ kind: 'embed', input: all, options: { instruction, dimensions, normalize } });
        onEvent?.({ done: all.length, total: all.length });
        const values = Float32Array.from(
          all.flatMap((text) => [...vectorOf(text, this.info.dim, dimensions, normalize)]),
        );
        return { values, tokens: all.reduce((sum, text) => sum + wordsOf(text).length + 1, 0), truncated: [] };
      },
      texts,
      options,
    );
  }

  rank(query, documents, options) {
    return rank(this.info, async ({ texts: list, options: { instruction } }, { signal, onEvent }) => {
      this.#check({ signal });
      this.calls.push({ kind: 'rank', input: { query, documents: list }, options: { instruction } });
      onEvent?.({ done: list.length, total: list.length });
      return { values: list.map((document) => rankOf(query, document)), truncated: [] };
    }, query, documents, options);
  }

  async look(image, options) {
    checkOptions('look', options);
    throw badParam('look()', 'needs a model with vision; this one is a fake');
  }

  async profile(options) {
    this.#check(checkOptions('call', options));
    return null;
  }

  async saved(options) {
    this.#check(checkOptions('call', options));
    return [...this.#saved.values()];
  }

  async forget(name, options) {
    this.#check(checkOptions('call', options));
    if (checkName(name) === undefined) this.#saved.clear();
    else this.#saved.delete(name);
  }

  async dispose() {
    if (!this.#over.signal.aborted)
      this.#over.abort(new QuernError('engine/disposed', 'The model has been disposed of.'));
  }

  [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() { return this.dispose(); }

  /** @param {{signal?: AbortSignal}} options */
  #check({ signal }) {
    this.#over.signal.throwIfAborted();
    signal?.throwIfAborted();
  }

  #idOf(word) {
    if (!this.#ids.has(word)) this.#ids.set(word, this.#words.push(word) - 1);
    return this.#ids.get(word);
  }

  #textOf(ids) { return Array.from(ids, (id) => this.#words[id] ?? `<${id}>`).join(''); }

  #reply(kind, options, check) {
    return new Reply((push) => {
      const stopped = new AbortController();
      const work = async () => {
        const checked = checkOptions(kind, options);
        sampling(checked, this.info.tokens);
        const input = check(checked);
        this.#check(checked);
        const call = { kind, input, options: checked };
        this.calls.push(call);
        await checkAsked(input, checked, this.info).catch((error) => {
          this.calls.splice(this.calls.indexOf(call), 1);
          throw error;
        });
        const signals = [this.#over.signal, checked.signal].filter(Boolean);
        const result = await abortable(this.#answer(call, push, stopped.signal), AbortSignal.any(signals));
        const { value, ...rest } = result;
        return 'value' in result ? { ...rest, ...await judged(options?.schema, value) } : result;
      };
      return { promise: work(), stop: () => stopped.abort() };
    });
  }

  async #answer(call, push, stopped) {
    const { input, options } = call;
    const words = wordsOf(written(input));
    const prompt = words.length;
    const { contextSize } = this.info;
    if (prompt > contextSize) {
      const message = `The prompt has ${prompt} tokens, but the context has ${contextSize} positions.`;
      throw new QuernError('use/context', message, { detail: { found: prompt, limit: contextSize } });
    }
    const answer = answerOf(await this.#next(call));
    if (!answer.error && !answer.finishReason) checkAnswer(answer, options);
    options.onPrefill?.({ phase: 'text', done: prompt, total: prompt, cached: 0 });
    if (options.save) this.#saved.set(options.save, { name: options.save, tokens: prompt, bytes: 0, date: 0 });
    return new Writing(answer, { options, words, push, stopped, idOf: (word) => this.#idOf(word), wordsOf }).result();
  }

  #next(call) {
    if (typeof this.#script === 'function') return this.#script(call);
    if (!Array.isArray(this.#script)) return this.#script;
    const at = this.calls.filter(({ kind }) => kind === 'chat' || kind === 'complete').indexOf(call);
    if (at < this.#script.length) return this.#script[at];
    throw new RangeError(`The script of fakeModel() has ${this.#script.length} answers, and this is call ${at + 1}.`);
  }
}

callable(FakeModel.prototype, [
  'saved',
  'forget',
  'tokenize',
  'detokenize',
  'countTokens',
  'logits',
  'look',
  'embed',
  'rank',
  'profile',
]);

/** Documented in testing.d.ts. */
export function fakeModel(script = 'Hello!', info = {}) {
  return new FakeModel(script, info);
}
