// SPDX-License-Identifier: MIT
// Runs a program that a model wrote, in a worker of its own (late/interpreter.js), and returns what it printed and
// returned. The interpreter ends a program whose time is up; here a worker that does not answer is ended too, because
// single steps of the interpreter may take any time (the power of a large number).

/** Milliseconds that a program has; those that a step may take beyond them; and those in which it has to begin. */
const TIME = 5000;
const GRACE = 1000;
const PATIENCE = 60_000;

/** Most letters of the output. */
const MOST = 20_000;

const NOT_LOADED = 'This page cannot load what runs programs: the first program needs a connection.';
const TOO_LONG = 'The program was ended after 5 seconds.';
const TOO_MUCH = 'The output is cut off after 20,000 letters.';

const rules = { createScriptURL: () => './late/interpreter.js' };
let policy;

/** What the model reads. @returns {string} throws it if the program has failed */
function resultOf({ printed, returned, failed }) {
  const output = printed.length > MOST ? `${printed.slice(0, MOST)}\n${TOO_MUCH}\n` : printed;
  if (failed !== undefined) throw new Error(output ? `${failed}\nIt had printed:\n${output}` : failed);
  if (returned === undefined) return output || 'The program printed and returned nothing.';
  const value = returned.length > MOST ? `${returned.slice(0, MOST)}\n${TOO_MUCH}` : returned;
  return output ? `${output}Returned: ${value}` : value;
}

/**
 * Runs a program.
 * @param {string} code an expression, or the body of an async function
 * @param {AbortSignal} signal ends it
 * @returns {Promise<string>} its output; rejects with a sentence
 */
export function runProgram(code, signal) {
  policy ??= globalThis.trustedTypes?.createPolicy('quern-program', rules) ?? rules;
  const worker = new Worker(policy.createScriptURL(''), { type: 'module' });
  let timer;
  const ended = new Promise((resolve, reject) => {
    const fail = (sentence) => reject(new Error(sentence));
    timer = setTimeout(fail, PATIENCE, NOT_LOADED);
    signal.addEventListener('abort', () => fail('The program was stopped.'), { once: true });
    worker.addEventListener('error', (event) => {
      event.preventDefault();
      fail(NOT_LOADED);
    });
    worker.addEventListener('message', ({ data }) => {
      clearTimeout(timer);
      if (data.began) timer = setTimeout(fail, TIME + GRACE, TOO_LONG);
      else if (data.began === false) fail(NOT_LOADED);
      else resolve(data);
    });
    worker.postMessage({ code, time: TIME, most: MOST });
  });
  return ended.then(resultOf).finally(() => {
    clearTimeout(timer);
    worker.terminate();
  });
}
