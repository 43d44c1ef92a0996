// SPDX-License-Identifier: MIT
// Jobs of the workers that read files (document/reader.js, document/late/exports.js). Each job has a worker of its own,
// which ends with it; one that takes long has a line above the message field, with a button that cancels it.
import { announce, button, byId, element } from '../shell/dom.js';
import { oneLine } from '../shell/format.js';
import { key, say, sayOf } from '../shell/words.js';

/** Work that is done sooner than this shows no line. */
const PATIENCE_MS = 300;

/** Sentences about the progress, by the parts of a document. */
const PARTS = {
  page: key('{1}: page {2} of {3}'), slide: key('{1}: slide {2} of {3}'), sheet: key('{1}: sheet {2} of {3}'),
  chapter: key('{1}: chapter {2} of {3}'),
};

/**
 * Shows what is being done, with a button that ends it.
 * @param {string} sentence
 * @param {() => void} onEnd
 * @param {string} [label] of the button
 * @param {string} [question] that waits for it
 * @returns {{say: (sentence: string) => void, remove: () => void}}
 */
export function showWork(sentence, onEnd, label = say`Cancel`, question = '') {
  const words = element('span', {}, sentence);
  const next = element('li', {}, element('span', {}, say`Next: ${oneLine(question, 200)}`));
  const list = element('ul', { className: 'queued', hidden: true }, next);
  const line = element('div', { className: 'editing', hidden: true }, words, button(label, onEnd, 'link-button'));
  byId('attached').before(list, line);
  const shown = setTimeout(() => {
    list.hidden = !question;
    line.hidden = false;
    announce(sentence);
  }, PATIENCE_MS);
  return {
    say: (more) => { words.textContent = more; },
    remove: () => {
      clearTimeout(shown);
      list.remove();
      line.remove();
    },
  };
}

const rules = { createScriptURL: (name) => (name === 'exports' ? './late/exports.js' : './reader.js') };
let policy;

/**
 * Lets a worker of its own do a job.
 * @param {{script?: 'exports', signal?: AbortSignal}} [how] script: reads conversations of other programs; else
 *   documents are read; signal: ends it too
 * @returns {Promise<?object>} its answer; null if it was cancelled; rejects with a sentence
 */
export function inWorker(job, sentence, name, { script, signal } = {}) {
  policy ??= globalThis.trustedTypes?.createPolicy('quern-read', rules) ?? rules;
  const worker = new Worker(policy.createScriptURL(script ?? ''), { type: 'module' });
  return new Promise((done, fail) => {
    const cancel = () => end(done, null);
    const line = showWork(sentence, cancel);
    signal?.addEventListener('abort', cancel, { once: true });
    const end = (how, value) => {
      worker.terminate();
      line.remove();
      signal?.removeEventListener('abort', cancel);
      how(value);
    };
    worker.addEventListener('message', ({ data }) => {
      if (data.what) line.say(sayOf(PARTS[data.what], sentence, data.done + 1, data.all));
      else if (data.refusal) end(fail, new Error(sayOf(data.refusal, name, ...data.values)));
      else end(done, data);
    });
    worker.addEventListener('error', () => end(fail, new Error(say`${name} cannot be read: its reader has failed.`)));
    worker.postMessage(job);
  });
}
