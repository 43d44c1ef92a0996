// SPDX-License-Identifier: MIT
// A client of the Model Context Protocol over streamable HTTP, revision 2025-06-18, which also speaks 2025-03-26: it
// lists the tools of a server and calls them. The official SDK is not used: it takes 81 KB by Brotli, more than the
// whole page, and makes code from text (its validators), which the policy of the page forbids. Of the protocol this is
// what a page with tools needs. Every error is a sentence that names the host.
import { say } from '../../shell/words.js';
import { messagesOf } from './mcp-stream.js';

/** Revisions that are spoken, the preferred one first. */
const REVISIONS = ['2025-06-18', '2025-03-26'];

const CLIENT = { name: 'quern', title: 'quern chat page', version: '0.1.0' };

/** Milliseconds without a byte after which a request has failed, and the longest time of one. */
const TIMES = { silence: 60_000, longest: 600_000 };

/** How often a stream that ends too early is resumed. */
const RESUMES = 3;

/** Requests carry nothing that was not given for them, and follow no redirect, which might take a header elsewhere. */
const HOW = { credentials: 'omit', redirect: 'error', cache: 'no-store', referrerPolicy: 'no-referrer' };

/** Statuses for a session that the server has forgotten: 404, and 400 of servers that take it for none. */
const GONE = [400, 404];

const NOT_SUPPORTED = { code: -32601, message: 'This client only calls tools.' };

/** An answer with a status that is no success. */
class StatusError extends Error {
  constructor(host, status) {
    const sentences = {
      400: say`${host} has refused the message. If it has sessions, it must let pages read the header Mcp-Session-Id.`,
      401: say`${host} asks for authorisation: give its header in the settings.`,
      403: say`${host} does not allow this: it may ask for another header, or not accept calls of this page.`,
      404: say`${host} has nothing at this address, or speaks an older form of MCP.`,
      405: say`${host} takes no messages at this address; it may speak an older form of MCP.`,
      429: say`${host} is busy. Try again later.`,
    };
    super(sentences[status] ?? say`${host} has answered with the status ${status}.`);
    this.status = status;
  }
}

/** Ends a request that hears nothing for too long. */
class Patience {
  #abort = new AbortController();
  #silence;
  #longest;
  #host;
  #times;
  #outer;
  #leave = () => this.#abort.abort(this.#outer.reason);

  /** @param {AbortSignal} [outer] ends it too */
  constructor(host, times, outer) {
    this.#host = host;
    this.#times = times;
    this.#outer = outer;
    if (outer?.aborted) this.#leave();
    outer?.addEventListener('abort', this.#leave);
    this.#longest = setTimeout(() => this.#end(), this.#times.longest);
    this.heard();
  }

  get signal() { return this.#abort.signal; }

  #end() { this.#abort.abort(new Error(say`${this.#host} has not answered in time.`)); }

  heard() {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.#end(), this.#times.silence);
  }

  over() {
    clearTimeout(this.#silence);
    clearTimeout(this.#longest);
    this.#outer?.removeEventListener('abort', this.#leave);
  }
}

export class Session {
  /** The name that the server gives itself, and whether its list of tools has changed. */
  name = '';
  isStale = false;
  #address;
  #host;
  #own;
  #id = null;             // of the session, if the server has given one
  #revision = '';
  #last = 0;              // id of the last request
  #leave = new AbortController();
  #times;

  /**
   * @param {{address: string, header?: ?{name: string, value: string}}} server header: sent with each request
   * @param {{silence: number, longest: number}} [times] of a request, in ms
   */
  constructor({ address, header }, times = TIMES) {
    this.#times = times;
    this.#address = address;
    this.#host = new URL(address).host;
    this.#own = header ? { [header.name]: header.value } : {};
  }

  /** Begins a session. Rejects with a sentence. */
  async connect(signal) {
    this.#id = null;
    this.#revision = '';
    const asked = { protocolVersion: REVISIONS[0], capabilities: {}, clientInfo: CLIENT };
    const { protocolVersion, serverInfo, capabilities } = await this.#request('initialize', asked, { signal });
    if (!REVISIONS.includes(protocolVersion))
      throw new Error(say`${this.#host} speaks another revision of MCP (${String(protocolVersion).slice(0, 20)}).`);
    if (!capabilities?.tools) throw new Error(say`${this.#host} is an MCP server without tools.`);
    this.#revision = protocolVersion;
    this.name = String(serverInfo?.title ?? serverInfo?.name ?? '').slice(0, 80);
    this.isStale = false;
    await this.#tell({ method: 'notifications/initialized' }, signal);
    if (capabilities.tools.listChanged === true) this.#listen();
  }

  /** Ends the session. */
  end() {
    this.#leave.abort();
    if (this.#id) this.#send('DELETE', {}, undefined, AbortSignal.timeout(this.#times.silence)).catch(() => {});
  }

  /** Hears what the server tells between requests. */
  async #listen() {
    this.#leave.abort();
    this.#leave = new AbortController();
    try {
      const response = await this.#send('GET', {}, undefined, this.#leave.signal);
      for await (const message of this.#messages(response, { onId() {}, onBytes() {} })) this.#hear(message);
    } catch {
      // The server has no such stream, or it broke.
    }
    this.isStale = true;      // changes are no longer heard
  }

  /**
   * Makes a request. If the server has forgotten the session, another one is begun, once.
   * @param {{signal?: AbortSignal, onProgress?: (progress: object) => void}} [how] signal: cancels it
   * @returns {Promise<object>} the result; rejects with a sentence
   */
  async request(method, params, how = {}) {
    try {
      return await this.#request(method, params, how);
    } catch (error) {
      if (!GONE.includes(error.status) || !this.#id) throw error;
      await this.connect(how.signal);
      this.isStale = true;
      return this.#request(method, params, how);
    }
  }

  async #request(method, params, { signal, onProgress }) {
    const id = ++this.#last;
    const patience = new Patience(this.#host, this.#times, signal);
    const meta = onProgress && { _meta: { progressToken: id } };
    try {
      const response = await this.#post({ id, method, params: { ...params, ...meta } }, patience.signal);
      if (method === 'initialize') this.#id = response.headers.get('Mcp-Session-Id');
      return await this.#answerTo(id, response, patience, onProgress);
    } catch (error) {
      if (signal?.aborted && method !== 'initialize') this.#cancel(id);
      throw patience.signal.aborted ? patience.signal.reason : error;
    } finally {
      patience.over();
    }
  }

  /** Reads messages until one answers the request. A stream that ends before is resumed, if the server allows that. */
  async #answerTo(id, first, patience, onProgress) {
    let resumeAt = '';
    for (let response = first, tries = 0; ; tries++) {
      const events = { onId: (at) => { resumeAt = at; }, onBytes: () => patience.heard() };
      for await (const message of this.#messages(response, events)) {
        if (message.id === id && message.method === undefined) return this.#resultOf(message);
        this.#hear(message, id, onProgress);
      }
      if (!resumeAt || tries === RESUMES) throw new Error(say`${this.#host} has ended its answer too early.`);
      response = await this.#send('GET', { 'Last-Event-ID': resumeAt }, undefined, patience.signal);
    }
  }

  /** The messages of an answer; a connection that breaks is an end. */
  async* #messages(response, events) {
    try {
      yield* messagesOf(response, this.#host, events);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
    }
  }

  #resultOf({ result, error }) {
    if (error) throw new Error(say`${this.#host} has refused it: ${String(error.message ?? error.code).slice(0, 500)}`);
    if (typeof result !== 'object' || result === null) throw new Error(say`${this.#host} has answered with no result.`);
    return result;
  }

  /** Takes a message that answers nothing: a notification, or a request of the server. */
  #hear({ id, method, params }, token = undefined, onProgress = undefined) {
    if (method === 'notifications/tools/list_changed') this.isStale = true;
    if (method === 'notifications/progress' && params?.progressToken === token) onProgress?.(params);
    if (id === undefined || typeof method !== 'string') return;
    const answer = method === 'ping' ? { result: {} } : { error: NOT_SUPPORTED };
    this.#tell({ id, ...answer }).catch(() => {});
  }

  #cancel(requestId) {
    const params = { requestId, reason: 'The user stopped it.' };
    this.#tell({ method: 'notifications/cancelled', params }).catch(() => {});
  }

  /** Sends a message that needs no answer. */
  async #tell(message, signal = AbortSignal.timeout(this.#times.silence)) {
    const response = await this.#post(message, signal);
    await response.body?.cancel();
  }

  #post(message, signal) {
    const headers = { 'Content-Type': 'application/json' };
    return this.#send('POST', headers, JSON.stringify({ jsonrpc: '2.0', ...message }), signal);
  }

  /** One request over HTTP. */
  async #send(method, more, body, signal) {
    const headers = {
      ...this.#own, Accept: method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream', ...more,
      ...(this.#revision && { 'MCP-Protocol-Version': this.#revision }),
      ...(this.#id && { 'Mcp-Session-Id': this.#id }),
    };
    const asked = { method, headers, body, signal, ...HOW };
    const response = await fetch(this.#address, /** @type {any} */ (asked)).catch((error) => {
      if (signal.aborted) throw error;
      throw new Error(globalThis.navigator?.onLine === false ? say`There is no connection to ${this.#host}.`
        : say`${this.#host} cannot be reached, or does not let pages of other sites call it (CORS).`);
    });
    if (response.ok) return response;
    response.body?.cancel().catch(() => {});
    throw new StatusError(this.#host, response.status);
  }
}
