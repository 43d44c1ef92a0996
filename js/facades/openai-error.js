// SPDX-License-Identifier: MIT
// Describes a failure as the OpenAI API does, with the status that makes clients throw the right class, and repeat
// requests that are worth repeating.

import { asQuernError } from '../shared/errors.js';
import { CHAT_FIELDS, FIELDS } from './openai-request.js';
import { inCustomTerms } from './openai-custom.js';
import { inOlderTerms } from './openai-legacy.js';
import { inTerms as callsInTerms } from './openai-tools.js';

/**
 * Status, type and code of an error, by its code or by the part before the slash. Other failures are the server's own.
 * `retry` false tells clients not to repeat the request; a number is the seconds to wait.
 */
const ROWS = {
  'use/param': { status: 400, type: 'invalid_request_error', code: 'invalid_value' },
  'use/empty': { status: 400, type: 'invalid_request_error', code: 'invalid_value' },
  'use/schema': { status: 400, type: 'invalid_request_error', code: 'invalid_schema' },
  'use/context': { status: 400, type: 'invalid_request_error', code: 'context_length_exceeded' },
  'use/busy': { status: 429, type: 'rate_limit_error', code: 'rate_limit_exceeded', retry: 1 },
  'engine/disposed': { status: 503, type: 'service_unavailable_error', code: 'unavailable', retry: 5 },
  engine: { status: 500, type: 'server_error', code: 'engine_failed' },
  image: { status: 400, type: 'invalid_request_error', code: 'invalid_image' },
  mem: { status: 500, type: 'server_error', code: 'out_of_memory' },
  model: { status: 500, type: 'server_error', code: 'model_failed', retry: false },
};
/**
 * The model cannot do what the request needs. It is the request's fault, but the next one may be fine. By
 * `error.detail.rule`.
 */
const UNFIT = { status: 400, type: 'invalid_request_error', code: 'unsupported_model' };
const UNFIT_RULES = ['rank', 'pooling', 'head'];

const OTHER = { status: 500, type: 'server_error', code: 'internal_error' };

const NAMES = { ...FIELDS, ...CHAT_FIELDS };

/**
 * The request's field for what the model calls `options.topP`; a message may mention several.
 * @param {object} [body] tells which of two fields was used
 */
function fieldOf(option, body) {
  const fields = Object.hasOwn(NAMES, option) ? NAMES[option] : [option];
  return fields.findLast((field) => body?.[field] != null) ?? fields[0];
}

/**
 * @param {unknown} failure
 * @param {any} [body] of the request that failed
 * @returns {{status: number, retry?: number | false, error: {message: string, type: string, param: string | null, code:
 *   string}}}
 */
export function errorOf(failure, body) {
  /** @type {{code: string, message: string, detail: any}} */
  const { code, message, detail } = asQuernError(failure, 'call');
  const isUnfit = code === 'model/unsupported' && UNFIT_RULES.includes(detail.rule);
  const { status, type, code: name, retry } = isUnfit ? UNFIT : ROWS[code] ?? ROWS[code.split('/')[0]] ?? OTHER;
  const inOwnForm = (text) => (body?.functions ? inOlderTerms(text) : inCustomTerms(text, body));
  const inTerms = (text) =>
    inOwnForm(callsInTerms(text.replace(/\boptions\.(\w+)/g, (_, option) => fieldOf(option, body))));
  const error = {
    message: inTerms(message),
    type,
    param: detail.param ? inTerms(detail.param) : null,
    code: detail.reason ?? name,
  };
  const { found, limit } = detail;
  const prompt = ['prompt', 'input', 'query'].find((name) => body?.[name] !== undefined) ?? 'messages';
  if (code === 'use/context') Object.assign(error, { param: prompt, n_prompt_tokens: found, n_ctx: limit });
  return { status, retry, error };
}

/**
 * Headers that tell clients whether to repeat a request, and after how many seconds.
 * @param {number | false} [retry] from errorOf()
 */
export function retryHeaders(retry) {
  if (retry === false) return { 'x-should-retry': 'false' };
  return typeof retry === 'number' ? { 'Retry-After': String(retry) } : {};
}
