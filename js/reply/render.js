// SPDX-License-Identifier: MIT
// Renders chat templates, which are programs written by whoever made the model file. They run in a worker of
// their own (template-*.js), so that one that never ends can be ended; what they can use up in the meantime is limited here.

import { Environment, Interpreter, parse, tokenize } from '@huggingface/jinja';

const MAX_TEMPLATE = 2 ** 20;   // letters; Qwen3's own has 4,000
const MAX_OUTPUT = 2 ** 26;     // letters
const MAX_RANGE = 100_000;      // loop steps; the engine has no limit of its own and would fill the memory

function range(start, stop, step = 1) {
  const [from, to] = stop === undefined || stop === null ? [0, start] : [start, stop];
  const count = Math.max(0, Math.ceil((to - from) / step));
  if (!(count <= MAX_RANGE)) throw new Error(`range() of over ${MAX_RANGE} steps`);
  return Array.from({ length: count }, (_, i) => from + i * step);
}

/** The part of Python's strftime that templates use to state the date. */
function strftimeNow(format) {
  const now = new Date();
  const name = (options) => new Intl.DateTimeFormat('en', options).format(now);
  const pad = (number) => String(number).padStart(2, '0');
  const parts = {
    Y: () => String(now.getFullYear()), m: () => pad(now.getMonth() + 1), d: () => pad(now.getDate()),
    H: () => pad(now.getHours()), M: () => pad(now.getMinutes()), S: () => pad(now.getSeconds()),
    b: () => name({ month: 'short' }), B: () => name({ month: 'long' }),
    a: () => name({ weekday: 'short' }), A: () => name({ weekday: 'long' }), '%': () => '%',
  };
  return format.replace(/%([YmdHMSbBaA%])/g, (_, letter) => parts[letter]());
}

function raise(message) {
  throw new Error(message);
}

const GLOBALS = {
  true: true, false: false, none: null, True: true, False: false, None: null,
  range, strftime_now: strftimeNow, raise_exception: raise,
};

function compile(template) {
  if (template.length > MAX_TEMPLATE) throw new Error(`the template has over ${MAX_TEMPLATE} letters`);
  return parse(tokenize(template, { lstrip_blocks: true, trim_blocks: true }));
}

let last = { template: null, program: null };

export function render(template, variables) {
  if (last.template !== template) last = { template, program: compile(template) };
  const environment = new Environment();
  for (const [name, value] of Object.entries({ ...GLOBALS, ...variables })) environment.set(name, value);
  const text = new Interpreter(environment).run(last.program).value;
  if (text.length > MAX_OUTPUT) throw new Error(`the rendered text has over ${MAX_OUTPUT} letters`);
  return text;
}

/** Answers one request of renderer.js. */
export function answer({ template, variables }) {
  try {
    return { text: render(template, variables) };
  } catch (error) {
    return { problem: String(error?.message ?? error).slice(0, 200) };
  }
}
