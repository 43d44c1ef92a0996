// SPDX-License-Identifier: MIT
// Gathers a reply from a server's chunks: a result like those of loaded models, and its events.

import { parsed } from '../shared/raw-json.js';
import { GatheredCalls } from './remote-tools.js';

const REASONS = { stop: 'stop', length: 'length', tool_calls: 'tool-calls' };

const NO_USAGE = { promptTokens: 0, cachedTokens: 0, completionTokens: 0, thinkingTokens: 0 };

/** The parts of a reply so far, as in Result of index.d.ts. */
export class Gathered {
  #begun = performance.now();
  #first = 0;
  #pieces = 0;
  #calls = new GatheredCalls();
  #isJson;

  result = { text: '', thinking: '', toolCalls: [], finishReason: 'aborted', usage: { ...NO_USAGE } };
  whole = false;

  /** @param {{schema?: string, json?: boolean}} options tell whether the text is JSON */
  constructor({ schema, json }) {
    this.#isJson = schema !== undefined || json === true;
  }

  /** @param {{choices?: any[] | null, usage?: any}} chunk of the server @param {(event: object) => void} push */
  take({ choices, usage }, push) {
    const [choice] = choices ?? [];
    const { delta, text } = choice ?? {};
    this.#add('thinking', delta?.reasoning_content ?? delta?.reasoning, push);
    this.#add('text', delta?.content ?? text, push);
    this.#calls.take(delta?.tool_calls, (event) => { this.#begin(); push(event); });
    if (choice?.finish_reason) {
      this.#endCalls(push, choice.finish_reason === 'length');
      const reason = Object.hasOwn(REASONS, choice.finish_reason) ? REASONS[choice.finish_reason] : 'stop';
      // some servers do not report it
      this.result.finishReason = reason === 'stop' && this.result.toolCalls.length ? 'tool-calls' : reason;
      this.whole = true;
    }
    if (!usage) return;
    const { prompt_tokens: promptTokens, completion_tokens: completionTokens } = usage;
    const { prompt_tokens_details: read, completion_tokens_details: written } = usage;
    const [cachedTokens, thinkingTokens] = [read?.cached_tokens ?? 0, written?.reasoning_tokens ?? 0];
    this.result.usage = { promptTokens, completionTokens, cachedTokens, thinkingTokens };
  }

  #begin() {
    this.#first ||= performance.now();
    this.#pieces++;
  }

  #endCalls(push, isCut) {
    const { toolCalls, text, ...cut } = this.#calls.end(push, isCut);
    this.result.toolCalls.push(...toolCalls);
    Object.assign(this.result, cut);
    this.#add('text', text, push);
  }

  #add(type, text, push) {
    if (typeof text !== 'string' || text === '') return;
    this.#begin();
    this.result[type] += text;
    push({ type, text });
  }

  /** Returns the result so far. If a server does not count tokens, its pieces are counted. */
  end() {
    this.#endCalls(() => {}, true);
    const now = performance.now();
    const first = this.#first || now;
    const tokens = this.result.usage.completionTokens || this.#pieces;
    const decodeMs = now - first;
    const tokensPerSecond = tokens > 1 && decodeMs > 0 ? (1000 * (tokens - 1)) / decodeMs : 0;
    const { text, finishReason } = this.result;
    const value = this.#isJson && finishReason === 'stop' ? parsed(text) : undefined;
    const timings = { waitMs: 0, prefillMs: first - this.#begun, decodeMs, tokensPerSecond };
    return { ...this.result, ...(value !== undefined && { value }), timings };
  }
}
