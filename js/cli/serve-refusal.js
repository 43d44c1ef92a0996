// SPDX-License-Identifier: MIT
// Refusals of a server: a status, and an error in the form of the OpenAI API, which facades/api-errors.js changes for
// other APIs.

import { errorIn } from '../facades/dialect.js';
import { retryHeaders } from '../facades/openai-error.js';

/** `type` and `code` of errors, by status. */
const KINDS = {
  400: ['invalid_request_error', 'invalid_request'],
  401: ['authentication_error', 'invalid_api_key'],
  403: ['permission_error', 'forbidden'],
  404: ['invalid_request_error', 'not_found'],
  405: ['invalid_request_error', 'method_not_allowed'],
  408: ['invalid_request_error', 'timeout'],
  413: ['invalid_request_error', 'too_large'],
  415: ['invalid_request_error', 'unsupported_media_type'],
  429: ['rate_limit_error', 'rate_limit_exceeded'],
  431: ['invalid_request_error', 'headers_too_large'],
  499: ['invalid_request_error', 'gone'],
  501: ['server_error', 'not_implemented'],
};

class Refusal extends Error {
  constructor(status, error, headers) {
    super(error.message);
    this.status = status;
    this.error = error;
    this.headers = headers;
  }
}

/** @param {{param?: string | null, code?: string, headers?: Record<string, string>}} [more] beyond the status's own */
export function refusal(status, message, more = {}) {
  const [type, name] = KINDS[status];
  const { param = null, code, headers = {} } = more;
  return new Refusal(status, { message, type, param, code: code ?? name }, headers);
}

/**
 * Any failure as a refusal.
 * @param {object} [body] of the request
 * @returns {{status: number, error: object, headers: Record<string, string>}}
 */
export function refusalOf(failure, body) {
  if (failure instanceof Refusal) return failure;
  const { status, error, retry } = errorIn(failure, body);
  return { status, error, headers: retryHeaders(retry) };
}
