// SPDX-License-Identifier: MIT
// Timings of a reply in the forms of llama-server and Ollama.

const each = (ms, n) => (n > 0 ? ms / n : 0);
const speed = (n, ms) => (ms > 0 ? (1000 * n) / ms : 0);

/** llama-server's `timings`. @param {import('../index.d.ts').Result} result */
export function timingsOf({ usage, timings }) {
  const { promptTokens, cachedTokens, completionTokens: written, draftedTokens, acceptedTokens } = usage;
  const { prefillMs, decodeMs } = timings;
  const read = promptTokens - cachedTokens;
  return {
    cache_n: cachedTokens,
    prompt_n: read,
    prompt_ms: prefillMs,
    prompt_per_token_ms: each(prefillMs, read),
    prompt_per_second: speed(read, prefillMs),
    predicted_n: written,
    predicted_ms: decodeMs,
    predicted_per_token_ms: each(decodeMs, written),
    predicted_per_second: speed(written, decodeMs),
    ...(draftedTokens && { draft_n: draftedTokens, draft_n_accepted: acceptedTokens }),
  };
}

const nanoseconds = (ms) => Math.round(ms * 1e6);

/** Ollama's durations and counts. @param {import('../index.d.ts').Result} result */
export function durationsOf({ usage, timings }) {
  const { waitMs, prefillMs, decodeMs } = timings;
  return {
    total_duration: nanoseconds(waitMs + prefillMs + decodeMs), load_duration: 0,
    prompt_eval_count: usage.promptTokens, prompt_eval_duration: nanoseconds(prefillMs),
    eval_count: usage.completionTokens, eval_duration: nanoseconds(decodeMs),
  };
}
