// SPDX-License-Identifier: MIT
// The HTTP server: node:http with limits on all that a client can send or leave unread. The checks of a request are, in
// this order: its host, its page, its key, its path and method, its body. Then its route answers. When a connection
// ends, the work for it ends too. One thread does all of this. Work that takes longer than a moment runs in turns: the
// key that has used the least time comes first, and within a key the connection.

import { createServer } from 'node:http';
import { SHAPES, shapeOf } from '../facades/api-errors.js';
import { pathOf } from '../facades/openai-api.js';
import { REQUEST_ID, requestId } from '../facades/request-id.js';
import { Turns } from '../worker/turns.js';
import { Bodies, Body, readBody } from './serve-body.js';
import { sendPieces, sendWhole } from './serve-events.js';
import { isPreflight } from './serve-guard.js';
import { Outboxes } from './serve-outbox.js';
import { refusal, refusalOf } from './serve-refusal.js';
import { routeOf } from './serve-routes.js';

/**
 * Sizes are in bytes, times in ms. `body`: one request's body; `bodies`: those of all requests under way. `unsent`:
 * bytes of an answer made before the client takes them; `unsentOfAll`: those of all answers, with the data held to make
 * them. `rate`: bytes per second that a client must take, or its connection ends after `slowMs`. `pipelined`,
 * `underWay`: requests of one connection, and of all, whose work has not ended, even if the client is gone. `accept`:
 * time to wait for a refusal by the model before a stream's headers are sent.
 */
export const LIMITS = {
  body: 4 * 2 ** 20,
  bodies: 128 * 2 ** 20,
  header: 16 * 2 ** 10,
  unsent: 256 * 2 ** 10,
  unsentOfAll: 128 * 2 ** 20,
  rate: 16 * 2 ** 10,
  connections: 1024,
  pipelined: 64,
  underWay: 1024,
  headersMs: 10_000,
  requestMs: 30_000,
  slowMs: 10_000,
  checkMs: 1000,
  pingMs: 15_000,
  acceptMs: 1000,
  lingerMs: 2000,
};

const CLIENT_ERRORS = {
  HPE_HEADER_OVERFLOW: [431, 'Request Header Fields Too Large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'Request Timeout'],
};

const after = (ms) => {
  let timer;
  return {
    passed: new Promise((resolve) => {
      timer = setTimeout(resolve, ms, true);
    }),
    cancel: () => clearTimeout(timer),
  };
};

export class HttpServer {
  #server;
  #site;
  #guard;
  #limits;
  #bodies;
  #outboxes;
  #looks = null;              // timer that checks the outboxes each second
  #turns = new Turns(() => new Promise((resolve) => { setImmediate(resolve); }));
  #guests = 0;                // number of connections so far
  // socket -> its guest number, and its unanswered requests: each with a response and a function that ends its work
  #open = new WeakMap();
  #underWay = 0;              // requests under way of all connections, even ended ones
  #closed = null;             // set when no more connections are accepted; resolves when all have ended

  /**
   * @param {import('./serve-routes.js').Site} site
   * @param {import('./serve-guard.js').Guard} guard
   * @param {Partial<typeof LIMITS>} [limits]
   */
  constructor(site, guard, limits) {
    this.#site = site;
    this.#guard = guard;
    this.#limits = { ...LIMITS, ...limits };
    this.#bodies = new Bodies(this.#limits.bodies, () => site.served.queue.retryAfter());
    this.#outboxes = new Outboxes(this.#limits, {
      letGo: (why) => site.metrics.count('clients_let_go_total', 1, { why }),
    });
    const { header, headersMs, requestMs, checkMs, connections } = this.#limits;
    const options = {
      maxHeaderSize: header,
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      connectionsCheckingInterval: checkMs,
    };
    this.#server = createServer(options, (request, response) => {
      // a fault here ends only this connection
      this.#receive(request, response).catch(() => request.socket.destroy());
    });
    this.#server.maxConnections = connections;
    this.#server.timeout = requestMs;
    this.#server.on('timeout', (socket) => this.#leaveIdle(socket));
    this.#server.on('connection', (socket) => this.#watch(socket));
    this.#server.on('clientError', (error, socket) => this.#refuseClient(error, socket));
  }

  /** @returns {Promise<number>} the port */
  listen(port, host) {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, () => {
        this.#server.on('error', () => {});     // the client may retry a connection that failed
        this.#looks = setInterval(() => this.#outboxes.look(), this.#limits.checkMs).unref();
        resolve(this.#server.address().port);
      });
    });
  }

  /** Accepts no more connections. Connected clients get their answers. */
  drain() {
    this.#closed ??= new Promise((resolve) => { this.#server.close(resolve); });
  }

  /** Ends when all answers have been sent, or after that time. */
  async close(ms) {
    this.drain();
    const wait = after(ms);
    const idle = setInterval(() => this.#server.closeIdleConnections(), 20);
    await Promise.race([this.#closed, wait.passed]);
    clearInterval(idle);
    wait.cancel();
    clearInterval(this.#looks);
    this.#server.closeAllConnections();
  }

  #watch(socket) {
    const exchanges = new Set();
    this.#open.set(socket, { exchanges, guest: ++this.#guests });
    socket.once('close', () => {
      for (const { end } of exchanges) end();
      this.#outboxes.close(socket);
    });
  }

  /** Ends a connection without any traffic for long, unless it waits for an answer. */
  #leaveIdle(socket) {
    if (!this.#open.get(socket)?.exchanges.size) socket.destroy();
  }

  /** Answers data that is no request, or not a complete one in time. */
  #refuseClient({ code }, socket) {
    const hasAnswer = [...this.#open.get(socket)?.exchanges ?? []].some(({ response }) => response.headersSent);
    if (!socket.writable || hasAnswer || code === 'ECONNRESET') return socket.destroy();
    const [status, words] = CLIENT_ERRORS[code] ?? [400, 'Bad Request'];
    const body = JSON.stringify(SHAPES.openai(status, refusal(status, `${words}.`).error));
    const about = [
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
      'Connection: close',
      `${REQUEST_ID}: ${requestId()}`,
    ];
    return socket.end(`${[`HTTP/1.1 ${status} ${words}`, ...about].join('\r\n')}\r\n\r\n${body}`, () =>
      socket.destroy(),
    );
  }

  async #receive(request, response) {
    const started = performance.now();
    const { exchanges, guest } = this.#open.get(request.socket);
    if (exchanges.size >= this.#limits.pipelined) return request.socket.destroy();
    const exchange = {
      request,
      response,
      end: () => {},
      body: new Body(this.#bodies),
      outbox: this.#outboxes.of(response),
      owner: { scope: 0, guest },
      path: 'other',
      shape: SHAPES.openai,
    };
    exchanges.add(exchange);
    this.#underWay++;
    if (this.#closed) response.setHeader('Connection', 'close');
    response.setHeader(REQUEST_ID, requestId(request.headers[REQUEST_ID]));
    let status;
    try {
      status = await this.#answer(exchange);
    } catch (failure) {
      status = await this.#refuse(exchange, failure);
    } finally {
      exchange.body.release();
      exchanges.delete(exchange);
      this.#underWay--;
    }
    this.#site.metrics.count('requests_total', 1, { path: exchange.path, code: status });
    this.#site.metrics.observe('request_seconds', (performance.now() - started) / 1000);
    return undefined;
  }

  // --- handling a request ---

  /** @returns {Promise<number>} the status */
  async #answer(exchange) {
    const { request, response } = exchange;
    const route = routeOf(request.url);
    exchange.path = route?.path ?? 'other';
    exchange.shape = shapeOf(pathOf(request.url));
    if (!this.#guard.knowsHost(request))
      throw refusal(403, 'The Host header does not name this server; --allow-host adds names.');
    if (isPreflight(this.#guard, request, response)) return 204;
    const key = this.#guard.keyOf(request);
    if (exchange.path !== '/health' && key < 0) {
      throw refusal(401, 'The key is missing or wrong.', { headers: { 'WWW-Authenticate': 'Bearer' } });
    }
    const method = request.method === 'HEAD' ? 'GET' : request.method;
    if (!route) throw refusal(404, 'There is nothing at this path.');
    const allowed = Object.keys(route.methods);
    if (!allowed.includes(method))
      throw refusal(405, `The method ${method} is not taken here.`, { headers: { Allow: allowed.join(', ') } });
    exchange.owner.scope = key;
    const { completion, wire, ...answer } = await this.#made(exchange, route, { method, key });
    return completion ? this.#complete(exchange, completion, wire) : this.#send(exchange, 200, answer);
  }

  /** The answer of a route to a request. */
  async #made(exchange, route, { method, key }) {
    const { request, body, owner } = exchange;
    const make = route.methods[method];
    const asker = {
      key,
      guest: owner.guest,
      socket: request.socket,
      body,
      turn: (work) => this.#turn(exchange, work),
      whenGone: (end) => {
        exchange.end = end;
      },
    };
    if (method !== 'POST' || route.bodiless) return make(this.#site, route, asker);
    if (this.#underWay > this.#limits.underWay)
      throw refusal(429, 'Too many requests are under way.', { headers: { 'Retry-After': '1' } });
    await readBody(request, body, this.#limits.body);
    const json = await asker.turn(() => body.parse());
    return asker.turn(() => make(this.#site, json, asker));
  }

  /** Runs work for a request when its turn comes, unless the client has gone. */
  #turn({ request, owner }, work) {
    return this.#turns.run(owner, () => {
      if (request.socket.destroyed) throw refusal(499, 'The client has gone.');
      return work();
    });
  }

  async #complete(exchange, completion, wire) {
    const { response, request, outbox } = exchange;
    const { unsent: mostUnsent, pingMs, acceptMs } = this.#limits;
    const worded = (failure) => this.#worded(exchange, failure);
    exchange.end = () => completion.stop();
    if (request.socket.destroyed) completion.stop();
    if (!completion.stream) return this.#send(exchange, 200, { json: await completion.whole() });
    const wait = after(acceptMs);
    const waiting = await Promise.race([completion.accepted, wait.passed]).finally(wait.cancel);
    return sendPieces(response, completion, { wire, outbox, waiting: waiting === true, pingMs, mostUnsent, worded });
  }

  /** A failure in the form of the request's API. */
  #worded({ body, shape }, failure) {
    const { status, error, headers } = refusalOf(failure, body.known);
    return { status, body: shape(status, error), headers };
  }

  #refuse(exchange, failure) {
    const { status, body, headers } = this.#worded(exchange, failure);
    return this.#send(exchange, status, { text: JSON.stringify(body) }, headers);
  }

  /**
   * Sends an answer. If the request was not read completely, the connection ends after it; the rest of the request is
   * read and dropped for a while, so that the client reads the answer.
   */
  async #send({ request, response, outbox, owner }, status, answer, headers = {}) {
    if (response.destroyed || response.headersSent) return status;
    const isWhole =
      request.complete || !(request.headers['transfer-encoding'] || Number(request.headers['content-length']) > 0);
    if (!isWhole) response.setHeader('Connection', 'close');
    const turn = (work) => this.#turns.run(owner, work);
    await sendWhole(response, answer, { status, headers, outbox, mostUnsent: this.#limits.unsent, turn });
    if (isWhole) return response.end() && status;
    request.resume();
    const wait = after(this.#limits.lingerMs);
    await Promise.race([
      new Promise((resolve) => {
        request.once('close', resolve);
        request.once('end', resolve);
      }),
      wait.passed,
    ]);
    wait.cancel();
    response.end();
    return status;
  }
}
