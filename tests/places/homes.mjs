// SPDX-License-Identifier: MIT
// Other homes of the package, in Chromium: it comes from another origin than the page; it lives in frames, in the page's own
// workers and in two tabs; and it is under policies of several kinds.
import assert from 'node:assert/strict';
import { serve } from '../../tools/serve.mjs';
import { ISOLATION, MODEL, OPEN, TRUSTED, chromiumVersion, front, judge, openHost, visit, visitAll } from './visit.mjs';
import { installUnbundled } from './workshop.mjs';

export const title = 'Other homes';

/** The recipe's (docs/recipes/headers.md), and nothing else. */
const STRICT = { 'content-security-policy': "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self' http:" };
const LISTED = { 'content-security-policy': `${STRICT['content-security-policy']}; ${TRUSTED['content-security-policy']}; trusted-types quern` };
const UNLISTED = { 'content-security-policy': `${TRUSTED['content-security-policy']}; trusted-types other` };
/** The recipe's for a package from another origin, as a sandboxed frame has it. */
const FRAMED = { 'content-security-policy': "default-src 'none'; script-src http://localhost:* 'wasm-unsafe-eval'; worker-src data: http://localhost:*; connect-src http:; frame-src 'self'" };
const CREDENTIALLESS = { ...ISOLATION, 'cross-origin-embedder-policy': 'credentialless' };

async function open(t) {
  const { url, close } = await serve({ root: installUnbundled('Other homes', ['homes']), csp: false, isolate: false });
  t.after(close);
  return { model: await openHost(t) + MODEL, origin: (own, headers) => front(own, url, headers) };
}

/** A case: `headers` of the page's origin, and of another one (`other`); what is asked of it, and what is expected. */
const home = ({ headers = ISOLATION, other, page = 'page.html', query = () => '', hash = () => ({}), threads = 2, refused }) => async ({ model, origin }, t) => {
  const url = await origin(t, headers);
  const elsewhere = other && await origin(t, other);
  const given = new URLSearchParams({ model, ...hash(elsewhere) });
  const outcome = await visit(`${url}${page}?${query(elsewhere)}#${given}`);
  if (!refused) return judge(outcome, { threads });
  assert.match(outcome.error ?? `no error, ${outcome.threads} threads`, refused);
  return { note: `refused: ${outcome.error.split(': ')[0]}` };
};

/** Two tabs want a model at the same time, of which one downloads it. */
const twoTabs = (headers, threads) => async ({ model, origin }, t) => {
  const url = `${await origin(t, headers)}page.html#${new URLSearchParams({ model })}`;
  const outcomes = await visitAll([url, url]);
  const [result] = outcomes.map((outcome) => judge(outcome, { threads }));
  const requests = outcomes[0].asked.filter((address) => address === model).length;
  assert.equal(requests, 1, `${requests} requests for the model`);
  return { ...result, note: 'works, one download' };
};

const frame = (attributes) => (elsewhere) => new URLSearchParams({ frame: `${elsewhere ?? './'}page.html`, ...attributes });
const fromElsewhere = (elsewhere) => ({ quern: `${elsewhere}quern/index.js` });
const workerElsewhere = (elsewhere) => ({ workerUrl: `${elsewhere}quern/worker.js` });
const holder = { page: 'holder.html' };

const GROUPS = {
  'Another origin': {
    'with CORS': home({ other: OPEN, hash: fromElsewhere }),
    'with CORS, not isolated': home({ headers: {}, other: OPEN, hash: fromElsewhere, threads: 1 }),
    'without CORS': home({ other: {}, hash: fromElsewhere, refused: /^import: Failed to fetch/ }),
    'workerUrl, with CORS': home({ other: OPEN, hash: workerElsewhere }),
    'workerUrl, without CORS': home({ other: {}, hash: workerElsewhere, refused: /^env\/worker: / }),
  },
  Frame: {
    'of the same origin': home({ ...holder, query: frame() }),
    'sandboxed, same origin allowed': home({ ...holder, query: frame({ sandbox: 'allow-scripts allow-same-origin' }) }),
    'sandboxed, with CORS': home({ ...holder, headers: { ...ISOLATION, ...OPEN }, query: frame({ sandbox: 'allow-scripts' }), threads: 1 }),
    'sandboxed, with CORS and strict CSP': home({ ...holder, headers: { ...ISOLATION, ...OPEN, ...FRAMED }, query: frame({ sandbox: 'allow-scripts' }), threads: 1 }),
    'of another origin': home({ ...holder, other: { ...ISOLATION, ...OPEN }, query: frame(), threads: 1 }),
    'of another origin, isolation allowed': home({ ...holder, other: { ...ISOLATION, ...OPEN }, query: frame({ allow: 'cross-origin-isolated' }) }),
  },
  'The page\'s own worker': {
    isolated: home({ ...holder }),
    'not isolated': home({ ...holder, headers: {}, threads: 1 }),
  },
  'Two tabs': {
    isolated: twoTabs(ISOLATION, 2),
    'not isolated': twoTabs({}, 1),
  },
  Policies: {
    'strict CSP': home({ headers: { ...ISOLATION, ...STRICT } }),
    'strict CSP, not isolated': home({ headers: STRICT, threads: 1 }),
    'Trusted Types everywhere': home({ headers: { ...ISOLATION, ...TRUSTED } }),
    'Trusted Types everywhere, not isolated': home({ headers: TRUSTED, threads: 1 }),
    'strict CSP and Trusted Types, quern listed': home({ headers: { ...ISOLATION, ...LISTED } }),
    'Trusted Types, quern not listed': home({ headers: { ...ISOLATION, ...UNLISTED }, refused: /^env\/csp: / }),
    'COEP credentialless': home({ headers: CREDENTIALLESS }),
  },
};

export const places = Object.entries(GROUPS).map(([name, cases]) => ({ name, version: '', by: chromiumVersion, open, cases }));
