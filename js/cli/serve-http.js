// SPDX-License-Identifier: MIT
// The HTTP server: node:http with limits on all that a client can send or leave unread. A request passes, in this
// order: the host it names, the page it comes from, its key, its path and method, its body; then its route answers.
// When a connection ends, whatever is made for it ends too. This thread answers all: what takes it more than a moment
// is done in turns, of which the key, then the connection, that has used the least has the next.

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
 * Sizes in bytes, times in ms. `body`, `bodies`: of one request, and of all under way. `unsent`: of an answer, what is
 * made before it is taken; `unsentOfAll`: of all, with what is held to make them of; `rate`: bytes a second that a
 * connection takes, or is let go after `slowMs`. `pipelined`, `underWay`: requests of a connection, and of all, whose
 * work has not ended, though whoever asked may be gone. `accept`: how long a refusal by the model is waited for before
 * a stream's headers go out.
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
  #looks = null;              // at them, each second
  #turns = new Turns(() => new Promise((resolve) => { setImmediate(resolve); }));
  #guests = 0;                // connections so far
  // socket -> its number, and its requests that are not answered: each a response and what ends its work
  #open = new WeakMap();
  #underWay = 0;              // requests of all of them, and of those who are gone
  #closed = null;             // once nobody is let in any more: when all have gone

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
      // a fault of ours is nobody else's end
      this.#receive(request, response).catch(() => request.socket.destroy());
    });
    this.#server.maxConnections = connections;
    this.#server.timeout = requestMs;
    this.#server.on('timeout', (socket) => this.#leaveIdle(socket));
    this.#server.on('connection', (socket) => this.#watch(socket));
    this.#server.on('clientError', (error, socket) => this.#refuseClient(error, socket));
  }

  /** @returns {Promise<number>} the port that it listens on */
  listen(port, host) {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, () => {
        this.#server.on('error', () => {});     // a connection that cannot be taken is its client's to try again
        this.#looks = setInterval(() => this.#outboxes.look(), this.#limits.checkMs).unref();
        resolve(this.#server.address().port);
      });
    });
  }

  /** Lets nobody in any more; who is connected is answered, and let go then. */
  drain() {
    this.#closed ??= new Promise((resolve) => { this.#server.close(resolve); });
  }

  /** Ends when the answers under way have gone out, or after that time. */
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

  /** A connection on which nothing has moved for long: whoever waits for an answer has time. */
  #leaveIdle(socket) {
    if (!this.#open.get(socket)?.exchanges.size) socket.destroy();
  }

  /** What is no request, or does not become one in time. */
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

  // --- the way of a request ---

  /** @returns {Promise<number>} the status */
  async #answer(exchange) {
    const { request, response } = exchange;
    const route = routeOf(request.url);
    exchange.path = route?.path ?? 'other';
    exchange.shape = shapeOf(pathOf(request.url));
    if (!this.#guard.knowsHost(request))
      throw refusal(403, 'The Host is not one of this server; --allow-host allows others.');
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

  /** What a route makes of a request. */
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

  /** What whoever asks has this thread do, in his turn; nothing where he has gone. */
  #turn({ request, owner }, work) {
    return this.#turns.run(owner, () => {
      if (request.socket.destroyed) throw refusal(499, 'Whoever asked has gone.');
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

  /** A failure as the API of the request words it. */
  #worded({ body, shape }, failure) {
    const { status, error, headers } = refusalOf(failure, body.known);
    return { status, body: shape(status, error), headers };
  }

  #refuse(exchange, failure) {
    const { status, body, headers } = this.#worded(exchange, failure);
    return this.#send(exchange, status, { text: JSON.stringify(body) }, headers);
  }

  /**
   * An answer to a request that has not come whole is the connection's last; what still comes is thrown away for a
   * while, so that it is read.
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
