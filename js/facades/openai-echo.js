// SPDX-License-Identifier: MIT
// Features of completions that chats lack: an answer that begins with its prompt (`echo`), with log probabilities of
// the prompt if `logprobs` are requested, and the best of several (`best_of`).

/**
 * @template T
 * @returns {{promise: Promise<T>, resolve: (value: T) => void, reject: (error: Error) => void}} a promise whose
 *   rejection may go unhandled
 */
function deferred() {
  const all = {};
  all.promise = new Promise((resolve, reject) => Object.assign(all, { resolve, reject }));
  all.promise.catch(() => {});
  return all;
}

/**
 * Replies to one prompt, each with the prompt before it. The first one requests the prompt's log probabilities for all.
 */
export class Echo {
  #model;
  #prompt;
  #most;
  #text;
  #thoughts = null;

  /**
   * @param {Pick<import('../index.d.ts').Model, 'complete' | 'detokenize'>} model
   * @param {string | number[]} prompt
   * @param {number} [most] likeliest tokens; undefined: no logprobs
   */
  constructor(model, prompt, most) {
    this.#model = model;
    this.#prompt = prompt;
    this.#most = most;
    this.#text = Promise.resolve(typeof prompt === 'string' ? prompt : model.detokenize?.(prompt) ?? '');
    this.#text.catch(() => {});
  }

  /** @param {object} options of complete() @returns {any} like a Reply */
  begin(options) {
    const isFirst = this.#most !== undefined && !this.#thoughts;
    const reply = this.#model.complete(this.#prompt, isFirst ? { ...options, promptLogprobs: this.#most } : options);
    if (isFirst) {
      this.#thoughts = deferred();
      reply.result.then(({ promptLogprobs = [] }) => this.#thoughts.resolve(promptLogprobs), this.#thoughts.reject);
    }
    const result = this.#resultOf(reply);
    result.catch(() => {});
    return { result, events: this.#events(reply, isFirst), stop: () => reply.stop() };
  }

  async #resultOf(reply) {
    const { text, logprobs = [], ...result } = await reply.result;
    const thoughts = await this.#thoughts?.promise;
    return { ...result, text: await this.#text + text, ...(thoughts && { logprobs: [...thoughts, ...logprobs] }) };
  }

  async* #events(reply, isFirst) {
    const text = await this.#text;
    if (!isFirst) yield { type: 'text', text, ...(this.#thoughts && { logprobs: await this.#thoughts.promise }) };
    for await (const event of reply.events) {
      if (event.type === 'prompt') this.#thoughts.resolve(event.logprobs);
      yield event.type === 'prompt' ? { type: 'text', text, logprobs: event.logprobs } : event;
    }
  }
}

/** The mean log probability of a choice; a choice without tokens comes last. */
function meanOf({ logprobs: { token_logprobs: numbers } }) {
  const known = numbers.filter((number) => number !== null);
  return known.length ? known.reduce((sum, number) => sum + number, 0) / known.length : -Infinity;
}

/**
 * Selects the likeliest choices of each prompt, best first.
 * @param {any} answer with logprobs
 * @param {{made: number, wanted: number, showsLogprobs: boolean}} how made and wanted: choices that a
 *   prompt has, and shall have
 */
export function bestOf(answer, { made, wanted, showsLogprobs }) {
  const prompts = Array.from({ length: answer.choices.length / made }, (_, i) =>
    answer.choices.slice(i * made, (i + 1) * made),
  );
  const best = prompts.flatMap((choices) =>
    choices
      .map((choice) => ({ choice, mean: meanOf(choice) }))
      .sort((a, b) => b.mean - a.mean)
      .slice(0, wanted)
      .map(({ choice }) => choice),
  );
  return {
    ...answer,
    choices: best.map((choice, index) => ({ ...choice, index, ...(!showsLogprobs && { logprobs: null }) })),
  };
}
