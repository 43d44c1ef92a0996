// SPDX-License-Identifier: MIT
// POST /responses over a Model: the response object, its events, and stored responses for later requests that name
// them.

import { badParam } from '../shared/errors.js';
import { errorIn } from './dialect.js';
import { flag } from './openai-request.js';
import { unsupported } from './openai-refused.js';
import { Output } from './responses-output.js';
import { responsesRequest } from './responses-request.js';
import { Reader } from './responses-store.js';
import { Turn } from './turn.js';
import { randomId } from '../shared/random-id.js';

const seconds = () => Math.floor(Date.now() / 1000);

/** Reasons why a response is incomplete, by the end of its reply. */
const ENDS = { length: 'max_output_tokens', context: 'max_output_tokens', aborted: 'max_output_tokens' };

function usageOf({ promptTokens, cachedTokens, completionTokens, thinkingTokens = 0 }) {
  return {
    input_tokens: promptTokens, input_tokens_details: { cached_tokens: cachedTokens, cache_write_tokens: 0 },
    output_tokens: completionTokens, output_tokens_details: { reasoning_tokens: thinkingTokens },
    total_tokens: promptTokens + completionTokens,
  };
}

/** Fields of the request that a response repeats. */
function echoOf(body, previous) {
  const { reasoning, text, tools } = body;
  return {
    background: body.background ?? false,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    max_tool_calls: null,
    metadata: body.metadata ?? {},
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: previous,
    reasoning: { effort: reasoning?.effort ?? null, summary: reasoning?.summary ?? null },
    service_tier: 'default',
    store: body.store ?? true,
    temperature: body.temperature ?? null,
    text: { ...text, format: text?.format ?? { type: 'text' } },
    tool_choice: body.tool_choice ?? 'auto',
    tools: (tools ?? []).map((tool) => ({ strict: false, ...tool })),
    top_logprobs: body.top_logprobs ?? 0,
    top_p: body.top_p ?? null,
    truncation: body.truncation ?? 'disabled',
    user: body.user ?? null,
    prompt_cache_key: body.prompt_cache_key ?? null,
    safety_identifier: body.safety_identifier ?? null,
  };
}

/** A response in progress; see turn.js. */
class Response {
  #head;
  #output;
  #now = { status: 'in_progress', completed_at: null, error: null, incomplete_details: null, usage: null };
  #number = 0;
  #onEnd;

  isCancelled = false;

  /**
   * @param {object} head fields that are known from the beginning
   * @param {Output} output
   * @param {(response: object) => void} onEnd
   */
  constructor(head, output, onEnd) {
    this.#head = head;
    this.#output = output;
    this.#onEnd = onEnd;
  }

  snapshot() {
    const { id, object, created_at: created, model, ...echo } = this.#head;
    const { status, completed_at: completed, ...now } = this.#now;
    return {
      id,
      object,
      created_at: created,
      completed_at: completed,
      status,
      ...now,
      model,
      output: [...this.#output.items],
      ...echo,
    };
  }

  #event(event) { return { ...event, sequence_number: this.#number++ }; }
  #told(type) { return this.#event({ type: `response.${type}`, response: this.snapshot() }); }

  * begin() {
    yield this.#told('created');
    yield this.#told('in_progress');
  }

  * event(event) {
    for (const told of this.#output.take(event)) yield this.#event(told);
  }

  * end({ finishReason, usage }) {
    const reason = ENDS[finishReason];
    for (const told of this.#output.close(reason ? 'incomplete' : 'completed')) yield this.#event(told);
    const status = this.isCancelled ? 'cancelled' : reason ? 'incomplete' : 'completed';
    this.#settle({ status, usage: usageOf(usage), ...(status === 'incomplete' && { incomplete_details: { reason } }) });
    yield this.#told(status);
  }

  * failed({ error }) {
    const { code, message, param } = error;
    for (const told of this.#output.close('incomplete')) yield this.#event(told);
    this.#settle({
      status: 'failed',
      error: { code: error.type === 'rate_limit_error' ? 'rate_limit_exceeded' : 'server_error', message },
    });
    yield this.#event({ type: 'error', code, message, param });
    yield this.#told('failed');
  }

  #settle(now) {
    Object.assign(this.#now, now, { completed_at: now.status === 'completed' ? seconds() : null });
    this.#onEnd(this.snapshot());
  }

  whole() { return this.snapshot(); }
}

/**
 * A turn that runs in the background: the client gets its initial state at once, and asks again later for the result.
 */
class Background {
  stream = false;
  accepted = Promise.resolve();
  #asked;
  #made;
  #turn;

  /** @param {Response} made @param {Turn} turn @param {(failure: unknown) => {error: any}} worded */
  constructor(made, turn, worded) {
    this.#asked = { ...made.snapshot(), status: 'queued' };
    this.#made = made;
    this.#turn = turn;
    this.ended = turn.whole().catch((failure) => Array.from(made.failed(worded(failure))));
  }

  async whole() { return this.#asked; }

  /** The client may disconnect. */
  stop() {}

  snapshot() { return this.#made.snapshot(); }

  async cancel() {
    this.#made.isCancelled = true;
    this.#turn.stop();
    await this.ended;
  }
}

/** Whether a response is stored, and whether it runs in the background. */
function storingOf(body, stream) {
  const isStored = body.store == null || flag(body, 'store');
  const isBackground = flag(body, 'background');
  if (isBackground && stream) throw unsupported('background', 'cannot be combined with stream in this version');
  if (isBackground && !isStored) throw badParam('background', 'needs store, to retrieve the response later');
  return { isStored, isBackground };
}

/**
 * Starts a request of POST /responses.
 * @param {Pick<import('../index.d.ts').Model, 'chat'>} model
 * @param {any} body parsed JSON
 * @param {{name: string}} identity
 * @param {import('./responses-store.js').Shelf} shelf of the client
 */
export function response(model, body, { name }, shelf) {
  const { messages, options, input, previous, stream, shape } = responsesRequest(body, new Reader(shelf));
  const { isStored, isBackground } = storingOf(body, stream);
  const head = {
    id: `resp_${randomId()}`,
    object: 'response',
    created_at: seconds(),
    model: name,
    ...echoOf(body, previous),
  };
  const sealed = body.include?.includes('reasoning.encrypted_content') ?? false;
  const output = new Output({ summary: body.reasoning?.summary != null, sealed, customs: shape?.customs ?? new Set() });
  const made = new Response(head, output, (whole) => {
    if (isStored) shelf.store({ response: whole, input, previous });
  });
  if (isBackground) shelf.checkLive();
  const turn = new Turn((begun) => model.chat(messages, { ...options, ...begun }), made, stream);
  if (!isBackground) return turn;
  const work = new Background(made, turn, (failure) => errorIn(failure, body));
  shelf.begin(head.id, work);
  return work;
}

// --- stored responses ---

/** Items on a page of a list: the default, and the limit. */
const PAGE = { usual: 20, most: 100 };

function pageOf(items, query) {
  const limit = Number(query.get('limit') ?? PAGE.usual);
  if (!Number.isInteger(limit) || limit < 1 || limit > PAGE.most)
    throw badParam('limit', `must be a whole number from 1 to ${PAGE.most}`);
  const ordered = query.get('order') === 'asc' ? items : items.toReversed();
  const after = query.get('after');
  const rest = after ? ordered.slice(ordered.findIndex(({ id }) => id === after) + 1) : ordered;
  const data = rest.slice(0, limit);
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: rest.length > limit,
  };
}

/**
 * Requests about stored responses, by the path after `/responses/{id}` and by method; a null answer means that there is
 * no such response, or no longer.
 * @type {Record<string, Record<string, (shelf: import('./responses-store.js').Shelf, id: string, query:
 *   URLSearchParams) => any>>}
 */
export const STORED = {
  '': {
    GET: (shelf, id, query) => {
      if (query.get('stream') === 'true')
        throw unsupported('stream', 'of a stored response is not supported by this version');
      return shelf.response(id);
    },
    DELETE: async (shelf, id) => {
      await shelf.live(id)?.cancel();
      return shelf.remove(id) ? { id, object: 'response', deleted: true } : null;
    },
  },
  '/cancel': {
    POST: async (shelf, id) => {
      await shelf.live(id)?.cancel();
      const found = shelf.response(id);
      if (found && !found.background)
        throw badParam('background', 'must have been true for a response to be cancelled');
      return found;
    },
  },
  '/input_items': {
    GET: (shelf, id, query) => {
      const items = new Reader(shelf).conversation(id, false);
      return items && pageOf(items, query);
    },
  },
};
