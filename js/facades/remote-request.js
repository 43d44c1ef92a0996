// SPDX-License-Identifier: MIT
// A call of chat() or complete() as a request to a server of the OpenAI API. Options that this API has no name for go by those that vLLM and
// llama.cpp's server know, and only where they were given: others refuse fields that they do not know.

import { FIELDS } from './openai-request.js';

/** Names in addition to those of the API. */
const ALSO = { repeatPenalty: ['repetition_penalty'] };

/** A bias that forbids a token. */
const NEVER = -100;

/** @param {any} options checked, as chat() and complete() take them */
function fieldsOf({ space, ...options }) {
  const fields = {};
  for (const [option, [field]] of Object.entries(FIELDS)) {
    if (options[option] !== undefined) for (const name of [field, ...ALSO[option] ?? []]) fields[name] = options[option];
  }
  if (fields.logit_bias) fields.logit_bias = Object.fromEntries(Object.entries(fields.logit_bias).map(([id, by]) => [id, Math.max(by, NEVER)]));
  if (fields.priority) fields.priority = Number(fields.priority === 'background');    // as vLLM has it
  if (space) fields.cache_salt = String(space);      // vLLM's name for what its prefixes are kept apart by
  return { ...fields, stream: true, stream_options: { include_usage: true } };
}

/** @param {{role: string, content: string, thinking?: string}[]} messages checked */
export function chatBody(model, messages, { thinking, continue: goesOn, ...options }) {
  return {
    model, ...fieldsOf(options),
    messages: messages.map(({ role, content, thinking: thought }) => ({ role, content, ...(thought && { reasoning_content: thought }) })),
    ...(thinking !== undefined && { chat_template_kwargs: { enable_thinking: thinking } }),
    ...(goesOn && { continue_final_message: true, add_generation_prompt: false }),
  };
}

export const completeBody = (model, prompt, options) => ({ model, ...fieldsOf(options), prompt });
