// SPDX-License-Identifier: MIT
// llama-server's own POST /completion: continues a prompt (a text or ids), and tells the timings.

import { badParam } from '../shared/errors.js';
import { asked, renamed, same } from './dialect.js';
import { wordOf } from './openai-limits.js';
import { isNothing } from './openai-request.js';
import { timingsOf } from './timings.js';
import { Turn } from './turn.js';

const FIELDS = {
  ...same(
    'prompt',
    'stream',
    'stop',
    'temperature',
    'top_k',
    'top_p',
    'min_p',
    'seed',
    'repeat_penalty',
    'presence_penalty',
    'frequency_penalty',
    'ignore_eos',
    'grammar',
    'json_schema',
    'priority',
  ),
  n_predict: 'max_tokens',
  n_probs: 'logprobs',
};

const off = (...values) => (value) => values.includes(value);

/** Fields that would change an answer and are not supported, each with a test for values that do nothing. */
const UNSUPPORTED = {
  image_data: isNothing,
  mirostat: off(0),
  typical_p: off(1),
  xtc_probability: off(0),
  dry_multiplier: off(0),
  dynatemp_range: off(0),
  top_n_sigma: off(-1),
  lora: isNothing,
  input_prefix: isNothing,
  input_suffix: isNothing,
  input_extra: isNothing,
};

/** This API's names for fields of a completion. */
const TERMS = { max_tokens: 'n_predict', logprobs: 'n_probs' };

/** Pairs of a token and a number; false forbids the token. */
function biasesOf({ logit_bias: biases }) {
  if (!Array.isArray(biases)) return biases == null ? {} : { logit_bias: biases };
  const isPair = (pair) => Array.isArray(pair) && pair.length === 2 && Number.isInteger(pair[0]);
  if (!biases.every(isPair)) throw badParam('logit_bias', 'must be pairs of a token id and a number or false');
  return { logit_bias: Object.fromEntries(biases.map(([id, bias]) => [id, bias === false ? -Infinity : bias])) };
}

function translate(body) {
  const { prompt } = body;
  const isPrompt =
    typeof prompt === 'string' || (Array.isArray(prompt) && prompt.every((id) => typeof id === 'number'));
  if (!isPrompt) throw badParam('prompt', 'must be a text, or an array of token ids');
  const completion = { ...renamed(body, FIELDS), ...biasesOf(body) };
  return completion.logprobs === 0 ? { ...completion, logprobs: null } : completion;
}

const STOPS = { length: 'limit', context: 'limit', aborted: 'none' };

/** Tokens with their ids and probabilities. */
function probabilitiesOf(logprobs) {
  const named = ({ id, ...one }) => ({ id, ...wordOf(one) });
  return logprobs
    ? { completion_probabilities: logprobs.map((one) => ({ ...named(one), top_logprobs: one.top.map(named) })) }
    : {};
}

/** An answer in progress; see turn.js. */
class Answer {
  #head;
  #prompt;
  #known = { promptTokens: 0 };
  #result;

  constructor(name, prompt) {
    this.#head = { index: 0, model: name, id_slot: -1, tokens: [] };
    this.#prompt = prompt;
  }

  * begin(known) { this.#known = known; }

  * event({ type, text, logprobs }) {
    if (type !== 'text') return;
    yield {
      ...this.#head,
      content: text,
      stop: false,
      tokens_evaluated: this.#known.promptTokens,
      ...probabilitiesOf(logprobs),
    };
  }

  * end(result) {
    this.#result = result;
    yield { ...this.#head, content: '', ...this.#last() };
  }

  whole() {
    return { ...this.#head, content: this.#result.text, ...this.#last(), ...probabilitiesOf(this.#result.logprobs) };
  }

  #last() {
    const { text, finishReason, stopText, usage } = this.#result;
    return {
      stop: true,
      stop_type: STOPS[finishReason] ?? (stopText ? 'word' : 'eos'),
      stopping_word: stopText ?? '',
      truncated: false,
      tokens_predicted: usage.completionTokens,
      tokens_evaluated: usage.promptTokens,
      tokens_cached: usage.promptTokens + usage.completionTokens,
      has_new_line: text.includes('\n'),
      prompt: this.#prompt,
      generation_settings: {},
      timings: timingsOf(this.#result),
    };
  }
}

/**
 * Starts a request of POST /completion.
 * @param {Pick<import('../index.d.ts').Model, 'complete' | 'info'>} model
 * @param {any} body parsed JSON
 * @param {{name: string}} identity
 */
export function completion(model, body, { name }) {
  const {
    prompts: [prompt],
    options,
    stream,
  } = asked(body, { unsupported: UNSUPPORTED, terms: TERMS, translate, info: model.info });
  const isEndless = body.n_predict == null || body.n_predict < 0; // -1 and -2: until the context is full
  const begin = (begun) => model.complete(prompt, { ...options, ...(isEndless && { maxTokens: undefined }), ...begun });
  return new Turn(begin, new Answer(name, typeof prompt === 'string' ? prompt : ''), stream);
}
