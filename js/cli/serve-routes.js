// SPDX-License-Identifier: MIT
// The paths of the server: those of the OpenAI API, of other APIs, and those of llama-server that its clients use. A
// handler returns `json`, a `text` with its type, or a `completion`, made in the scope of the request's key. If it
// throws, the answer is an error. Nothing in a request names a file, a path or a template.

import { CREATE, RESPONSES, listObject, modelObject, named, pathOf } from '../facades/openai-api.js';
import { Shelves } from '../facades/responses-store.js';
import { CREATE_OTHER } from '../facades/other-apis.js';
import { badParam } from '../shared/errors.js';
import { ollamaRoutes } from './serve-ollama.js';
import { asked, inTurn } from './serve-queued.js';
import { refusal } from './serve-refusal.js';
import { tokenRoutes } from './serve-tokens.js';

/**
 * @typedef {object} Site the served model with its settings
 * @property {import('./serve-model.js').ServedModel} served
 * @property {import('./serve-metrics.js').Metrics} metrics
 * @property {string} name of the model
 * @property {boolean} onlyName whether requests for other names are refused
 * @property {string} file base name of the model's file
 * @property {string} version of the package
 * @property {boolean} slots whether /slots is available
 * @property {() => Promise<string>} template the model's chat template
 * @property {number} started seconds since 1970
 * @property {boolean} [sharesCaches] whether requests of all keys share caches
 */


const identityOf = ({ served, name, version }) => ({ name, fingerprint: `quern-${version}-${served.fingerprint}` });

function checkName({ name, onlyName }, given) {
  if (!onlyName || given == null || given === name) return;
  if (typeof given !== 'string') throw badParam('model', 'must be a string');
  const message = `The model '${given.slice(0, 64)}' does not exist; this server has '${name}'.`;
  throw refusal(404, message, { param: 'model', code: 'model_not_found' });
}

function health({ served }) {
  if (served.obstacle) throw served.obstacle;
  return { json: { status: 'ok' } };
}

const metrics = ({ served, metrics: all }) => (
  { text: all.text(served.gauges(), served.histograms()), type: 'text/plain; version=0.0.4; charset=utf-8' });

/** Ollama's clients add `:latest` to names without a tag. */
const checkOllama = (site, given) => checkName(site, typeof given === 'string' ? given.replace(/:latest$/, '') : given);

/** The work of all paths. */
const ALL = { ...CREATE, ...CREATE_OTHER };

/**
 * The model for the client of a request. Within a shared scope, each key, or each connection, has its share of the
 * engine's time.
 * @param {import('./serve-queue.js').Asker} asker
 */
function modelFor(site, asker) {
  const { served, sharesCaches = false } = site;
  const { key, guest } = asker;
  const model = sharesCaches ? served.within(0, key || guest) : served.within(key, guest);
  const inPlace = (kind) => (...given) => asked({ queue: served.queue, asker }, () => model[kind](...given));
  return { ...model, tokenize: inPlace('tokenize'), detokenize: inPlace('detokenize') };
}

/** Handles a path that makes replies or lists, when the request's turn comes. */
const create = (path) => (site, body, asker) => {
  const check = path.startsWith('/api/') ? checkOllama : checkName;
  check(site, body?.model);
  const model = modelFor(site, asker);
  const making = ALL[path];
  const begin = (given, used) => making.begin(used, given, identityOf(site), shelfOf(site, asker.key));
  return {
    completion: inTurn({ queue: site.served.queue, model, path, making, body, asker }, begin),
    wire: making.wire,
  };
};

/** Stored responses, by site. @type {WeakMap<Site, Shelves>} */
const shelves = new WeakMap();

/** The stored responses of a key. */
function shelfOf(site, scope) {
  if (!shelves.has(site)) shelves.set(site, new Shelves());
  return shelves.get(site).of(scope);
}

/** Handles a request about a stored response. */
const stored = (handler) => async (site, { id, query }, { key }) => {
  const json = await handler(shelfOf(site, key), id, query);
  if (json) return { json };
  throw refusal(404, `The response '${id.slice(0, 64)}' is not stored here, or no longer.`, { param: 'response_id' });
};

const storedRoutes = Object.entries(RESPONSES).map(([path, methods]) => (
  [path, Object.fromEntries(Object.entries(methods).map(([method, handler]) => [method, stored(handler)]))]));

const modelOf = ({ served, name, started }) => modelObject(served.info, name, started);

const models = (site) => ({ json: listObject([modelOf(site)]) });

function model(site, { id }) {
  checkName(site, id);
  return { json: modelOf(site) };
}

/** Answers clients that test whether a server is there. */
const root = () => ({ text: 'quern is running', type: 'text/plain; charset=utf-8' });

// --- llama-server's ---

async function props({ served, name, file, version, template }) {
  const { contextSize, parallel } = served.info;
  return { json: {
    default_generation_settings: { n_ctx: contextSize }, total_slots: parallel, model_alias: name, model_path: file,
    chat_template: await template(), build_info: `quern ${version}`,
  } };
}

function slots({ served, slots: allowed }) {
  if (!allowed) throw refusal(501, 'Slots are shown with --slots only.');
  const jobs = served.jobs.filter(({ phase }) => phase !== 'waiting');
  const { contextSize: n_ctx, parallel } = served.info;
  return {
    json: Array.from({ length: parallel }, (_, id) => ({
      id,
      n_ctx,
      is_processing: id < jobs.length,
      n_prompt_tokens: jobs[id]?.total ?? 0,
      n_prompt_tokens_processed: jobs[id]?.done ?? 0,
    })),
  };
}

/** Handlers by path and method. */
const ROUTES = {
  '/health': { GET: health },
  '/metrics': { GET: metrics },
  '/models': { GET: models },
  '/models/{id}': { GET: model },
  '/props': { GET: props },
  '/slots': { GET: slots },
  ...Object.fromEntries(Object.keys(ALL).map((path) => [path, { POST: create(path) }])),
  ...Object.fromEntries(storedRoutes),
  ...ollamaRoutes(checkOllama),
  ...tokenRoutes(checkName, shelfOf, modelFor),
  '/': { GET: root },
};

/** Paths whose POST has no body. */
const BODILESS = ['/responses/{id}/cancel'];

/**
 * Finds the route of a path, with /v1 or without.
 * @returns {{path: string, methods: Record<string, Function>, id: string, query: URLSearchParams, bodiless: boolean} |
 *   null} path: its name in the metrics
 */
export function routeOf(url) {
  const path = pathOf(url);
  const found = Object.hasOwn(ROUTES, path) ? null : named(path);
  const { key, id } = found?.at === 0 ? found : { key: path, id: '' };
  if (!Object.hasOwn(ROUTES, key)) return null;
  const query = new URLSearchParams(url.split('?').slice(1).join('?'));
  return { path: key, methods: ROUTES[key], id, query, bodiless: BODILESS.includes(key) };
}
