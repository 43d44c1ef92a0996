// SPDX-License-Identifier: MIT
// Gives an error the form that clients of each API expect: the OpenAI API, Anthropic and Ollama. The message and the
// code stay the same.

/** Anthropic's error types by status; its clients choose the class of an error by the status itself. */
const TYPES = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
};

const typeOf = (status) => TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');

/** @type {Record<string, (status: number, error: {message: string, param?: string | null, code: string}) => object>} */
export const SHAPES = {
  openai: (status, error) => ({ error }),
  anthropic: (status, { message, param, code }) => (
    { type: 'error', error: { type: typeOf(status), message, code, ...(param && { param }) } }),
  ollama: (status, { message, param, code }) => ({ error: message, code, ...(param && { param }) }),
};

/** The form of errors at a path. @param {string} path without /v1 */
export function shapeOf(path) {
  if (path === '/messages' || path.startsWith('/messages/')) return SHAPES.anthropic;
  return path.startsWith('/api/') ? SHAPES.ollama : SHAPES.openai;
}
