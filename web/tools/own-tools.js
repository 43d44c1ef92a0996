// SPDX-License-Identifier: MIT
// The page's own tools: the date and time, a calculator, programs, and a search in the documents of the conversation,
// which is offered only where there are some. Their words are for the model, and the demo model was trained with those
// of the first two (examples/demo-model/skills.py).
import { calculated } from './calculator.js';
import { runProgram } from './program.js';

/**
 * @typedef {object} Scene
 * @property {string} conversation its id
 * @property {Array<{name: string, text: string}>} texts of the conversation
 * @property {() => Promise<{search: Function}>} documents loads what reads them
 * @property {object} session the model in use (model/session.js), and what loads others
 * @property {(sentence: string) => void} wait tells what the reply waits for
 * @property {() => void} onChange called when a call of the reply shows something else
 */

const NOW = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeStyle: 'long' });

/** Most letters that a search returns, about 1,500 tokens; of a small context a letter for each of its tokens. */
const MOST_FOUND = 6000;

const EXPRESSION = {
  type: 'string',
  description: 'Numbers with + - * / % ^ and parentheses',
  minLength: 1,
  maxLength: 200,
};

const WORDS = {
  type: 'string',
  description: 'Words that the passage has, in the language of the document',
  minLength: 1,
  maxLength: 500,
};

const CODE = {
  type: 'string',
  description: 'An expression, or the body of an async function, which returns a value or prints with console.log',
  minLength: 1,
  maxLength: 20_000,
};

const object = (properties) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});

/** What a search tells the model: each passage below its document and its place. */
async function searched(model, scene, { words }, { signal }) {
  const { search } = await scene.documents();
  const most = Math.min(MOST_FOUND, model.info.contextSize);
  const found = await search(scene, words, most, signal);
  if (!found) throw new Error('The user has ended the search.');
  if (!found.length) return 'No passage of the documents has any of these words.';
  return found.map(({ name, place, text }) => `[${name}, ${place}]\n${text}`).join('\n\n');
}

const NAMES = 20;

/** The names of the documents, without repetitions. */
const namesOf = (texts) => [...new Set(texts.map(({ name }) => name))].slice(0, NAMES).join(', ');

/**
 * The tools of a conversation by their names.
 * @param {Scene} scene
 */
export const ownTools = (model, scene) => ({
  now: {
    description: 'The date and the time at the place of the user',
    parameters: object({}),
    execute: () => NOW.format(),
  },
  calculate: {
    description: 'The value of an arithmetic expression', parameters: object({ expression: EXPRESSION }),
    execute: ({ expression }) => calculated(expression),
  },
  run_javascript: {
    description: 'What a JavaScript program returns and prints. It has 5 seconds, and no network, files, page or timers',
    parameters: object({ code: CODE }),
    execute: ({ code }, { signal }) => runProgram(code, signal),
  },
  ...(scene.texts.length && {
    search_documents: {
      description: `The passages nearest to some words, of the documents of this conversation: ${namesOf(scene.texts)}`,
      parameters: object({ words: WORDS }),
      execute: (given, call) => searched(model, scene, given, call),
    },
  }),
});
