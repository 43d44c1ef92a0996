// SPDX-License-Identifier: MIT
// Writes a reply of a script word by word within the requested limits: maxTokens, stop texts, stop(); and adds the
// other fields of a result.

const NO_TIME = Object.freeze({ waitMs: 0, prefillMs: 0, decodeMs: 0, tokensPerSecond: 0 });

/** Ends all writing. */
class End extends Error {
  constructor(reason) {
    super(reason);
    this.reason = reason;
  }
}

/** The value of a text, if one was requested. */
function valueIn(text, { schema, json, choices }) {
  if (choices !== undefined) return { value: text };
  return schema !== undefined || json ? { value: JSON.parse(text) } : {};
}

export class Writing {
  #answer;
  #options;
  #push;
  #stopped;
  #idOf;
  #wordsOf;
  #words;
  #tokens = 0;
  #thoughts = 0;          // tokens of thinking
  #text = '';
  #thinking = '';
  #toolCalls = [];
  #logprobs = [];
  #stopText;

  /**
   * @param {import('../testing.d.ts').FakeAnswer} answer
   * @param {{options: any, words: string[], push: (event: object) => void, stopped: AbortSignal, idOf: (word: string)
   *   => number, wordsOf: (text: string) => string[]}} how words: those of the prompt
   */
  constructor(answer, { options, words, push, stopped, idOf, wordsOf }) {
    this.#answer = answer;
    this.#options = options;
    this.#words = words;
    this.#push = push;
    this.#stopped = stopped;
    this.#idOf = idOf;
    this.#wordsOf = wordsOf;
  }

  /** @returns {Promise<object>} Result of index.d.ts */
  async result() {
    const {
      thinking = '',
      text = '',
      toolCalls = [],
      error,
      finishReason = toolCalls.length ? 'tool-calls' : 'stop',
    } = this.#answer;
    const promptLogprobs = this.#thoughtsOfPrompt();
    const reason = await this.#write(thinking, text, toolCalls).then(() => finishReason, (end) => {
      if (end instanceof End) return end.reason;
      throw end;
    });
    if (error && reason !== 'aborted') throw error;
    const isWhole = reason === 'stop' && this.#text === text;
    return {
      text: this.#text,
      ...(isWhole && valueIn(text, this.#options)),
      thinking: this.#thinking,
      toolCalls: this.#toolCalls,
      ...(this.#options.logprobs !== undefined && { logprobs: this.#logprobs }),
      ...(promptLogprobs && { promptLogprobs }),
      ...(this.#stopText && { stopText: this.#stopText }),
      finishReason: reason,
      usage: {
        promptTokens: this.#words.length,
        imageTokens: 0,
        cachedTokens: 0,
        completionTokens: this.#tokens,
        thinkingTokens: this.#thoughts,
      },
      timings: { ...NO_TIME },
    };
  }

  async #write(thinking, text, toolCalls) {
    for (const word of this.#wordsOf(thinking)) {
      await this.#step();
      this.#thinking += word;
      this.#thoughts++;
      this.#push({ type: 'thinking', text: word });
    }
    const whole = this.#upToStop(text);
    for (const word of this.#wordsOf(whole)) {
      await this.#step();
      this.#text += word;
      this.#push({ type: 'text', text: word, ...this.#likelihood(word) });
    }
    if (this.#stopText) throw new End('stop');
    for (const [index, call] of toolCalls.entries()) await this.#call(index, call);
  }

  /** Writes a token, or throws if none may be written any more. */
  async #step() {
    const { pauseMs } = this.#answer;
    await (pauseMs ? new Promise((done) => { setTimeout(done, pauseMs); }) : null);
    this.#options.signal?.throwIfAborted();
    if (this.#stopped.aborted) throw new End('aborted');
    if (this.#tokens >= (this.#options.maxTokens ?? Infinity)) throw new End('length');
    this.#tokens++;
  }

  async #call(index, { id = `call_${index}`, name, arguments: given = {} }) {
    await this.#step();
    this.#push({ type: 'tool-call-start', index, id, name });
    this.#push({ type: 'tool-call-delta', index, delta: JSON.stringify(given) });
    this.#push({ type: 'tool-call', index, id, name, arguments: given });
    this.#toolCalls.push({ id, name, arguments: given });
  }

  #upToStop(text) {
    const { stop = [] } = this.#options;
    const found = [stop].flat().filter((word) => text.includes(word));
    this.#stopText = found.toSorted((a, b) => text.indexOf(a) - text.indexOf(b))[0];
    return this.#stopText ? text.slice(0, text.indexOf(this.#stopText)) : text;
  }

  #thoughtsOfPrompt() {
    const { promptLogprobs: n } = this.#options;
    if (n === undefined) return null;
    const ones = this.#words.map((text) => ({ id: this.#idOf(text), text, logprob: 0 }));
    const logprobs = ones.map((one, i) =>
      i === 0 ? { ...one, logprob: null, top: [] } : { ...one, top: n ? [one] : [] },
    );
    this.#push({ type: 'prompt', logprobs });
    return logprobs;
  }

  /** Every word has the probability 1. */
  #likelihood(word) {
    const { logprobs: n } = this.#options;
    if (n === undefined) return null;
    const one = { id: this.#idOf(word), text: word, logprob: 0 };
    this.#logprobs.push({ ...one, top: n ? [one] : [] });
    return { logprobs: this.#logprobs.slice(-1) };
  }
}
