// SPDX-License-Identifier: MIT
// Checks the options of sessions of the Prompt API, in the order in which browsers check them: types of content,
// languages, sampling, tools.

import { exception } from './prompt-input.js';
import { isObject } from '../shared/kinds.js';

/** Types of content. Sessions themselves write calls of tools and their results. */
const TYPES = ['text', 'image', 'audio', 'tool-call', 'tool-response'];
const WRITTEN = ['text', 'tool-call'];

/**
 * Types and languages in options. An unknown type is a TypeError, an invalid language tag a RangeError; all languages
 * are accepted.
 */
function typesOf(expected) {
  return Array.from(expected ?? [], ({ type, languages }) => {
    if (!TYPES.includes(type)) throw new TypeError(`There is no content type ${String(type).slice(0, 64)}.`);
    if (languages !== undefined) Intl.getCanonicalLocales(Array.from(languages));
    return type;
  });
}

/** The reason why a model does not support the options; empty if it does. */
function missing(model, inputs, outputs) {
  if (inputs.includes('audio')) return 'quern models have no audio input';
  if (inputs.includes('image') && !model.info.vision)
    return 'this model has no vision: load it with its projector (`vision`)';
  return outputs.every((type) => WRITTEN.includes(type)) ? '' : 'quern models write only text';
}

// --- sampling ---

/** Options of chat() by mode; `balanced` uses the defaults of the model's card or file. */
const MODES = {
  'most-predictable': { temperature: 0 },
  predictable: { temperature: 0.3 },
  'slightly-predictable': { temperature: 0.5 },
  balanced: {},
  'slightly-creative': { temperature: 0.9, topP: 0.9 }, creative: { temperature: 1, topP: 0.95, topK: 40 },
  'most-creative': { temperature: 1.3, topP: 1, topK: 100 },
};

const MOST = { topK: 1000, temperature: 2 };
const LEAST = { topK: 1, temperature: 0 };

/** Documented in prompt-api.d.ts. */
export function paramsOf({ info: { card, sampling } }) {
  const { topK, temperature } = { ...card.plain, ...sampling };
  return { defaultTopK: topK, maxTopK: MOST.topK, defaultTemperature: temperature, maxTemperature: MOST.temperature };
}

const isGiven = (value) => value !== undefined && value !== null;

/** @returns {string | null} null: numbers are given instead */
function modeOf({ samplingMode, temperature, topK }) {
  const hasNumbers = isGiven(temperature) || isGiven(topK);
  if (samplingMode === undefined) return hasNumbers ? null : 'balanced';
  if (!Object.hasOwn(MODES, samplingMode))
    throw new TypeError(`The samplingMode must be one of ${Object.keys(MODES).join(', ')}.`);
  if (hasNumbers) throw new TypeError('A samplingMode and numbers (temperature, topK) exclude each other.');
  return samplingMode;
}

function limited(name, given) {
  const value = Number(given);
  if (!(value >= LEAST[name])) throw new RangeError(`The ${name} must be ${LEAST[name]} or more.`);
  return Math.min(name === 'topK' ? Math.floor(value) : value, MOST[name]);
}

/** @returns {{mode: string | null, sampling: object}} sampling: options of chat() */
function samplingOf(options) {
  const mode = modeOf(options);
  if (mode) return { mode, sampling: MODES[mode] };
  const names = ['temperature', 'topK'].filter((name) => isGiven(options[name]));
  return { mode, sampling: Object.fromEntries(names.map((name) => [name, limited(name, options[name])])) };
}

// --- tools ---

/** Converts a tool's result: a text, or a list of content. */
function givenBack(value) {
  if (!Array.isArray(value) || !value.every((part) => part?.type === 'text')) return value;
  return value.map((part) => part.value).join('');
}

/** Copies a schema, so that a value that JSON cannot express fails here, with its own exception. */
function schemaOf(name, schema) {
  const wrong = (what) => new TypeError(`The inputSchema of ${name} must ${what}.`);
  if (!isObject(schema)) throw wrong('be an object');
  const { type, properties, required } = schema;
  if (type !== 'object') throw wrong('have the type \'object\'');
  if (properties !== undefined && !isObject(properties)) throw wrong('have an object of properties');
  if (required !== undefined && !Array.isArray(required)) throw wrong('have an array of required names');
  return JSON.parse(JSON.stringify(schema));
}

function toolOf(tool) {
  const { name, description, inputSchema, execute } = tool ?? {};
  if (typeof name !== 'string' || !name) throw new TypeError('A tool must have a name.');
  const shown = name.slice(0, 64);
  if (typeof description !== 'string' || !description)
    throw new TypeError(`The tool ${shown} must have a description.`);
  const parameters = schemaOf(shown, inputSchema);
  if (typeof execute !== 'function') throw new TypeError(`The tool ${shown} must have a function execute.`);
  return [
    name,
    { description, parameters, execute: async (args) => givenBack(await Reflect.apply(execute, tool, [args])) },
  ];
}

/** Converts tools to the form of run(); null if there are none. */
function toolsOf(tools) {
  const list = Array.from(tools, toolOf);
  const names = new Set(list.map(([name]) => name));
  if (names.size < list.length) throw new TypeError('Two tools have the same name.');
  return list.length ? Object.fromEntries(list) : null;
}

// --- all of it ---

/** @returns {boolean} whether a session could be created; checks that only create() makes are not made here */
export function canMake(model, options) {
  const inputs = typesOf(options.expectedInputs);
  const problem = missing(model, inputs, typesOf(options.expectedOutputs));
  modeOf(options);
  return !problem;
}

/** The checked options of a session. */
export function setupOf(model, options) {
  const [inputs, outputs] = [typesOf(options.expectedInputs), typesOf(options.expectedOutputs)];
  const { mode, sampling } = samplingOf(options);
  const tools = toolsOf(options.tools ?? []);
  const problem = missing(model, inputs, outputs);
  if (problem) throw exception('NotSupportedError', `This session cannot be made: ${problem}.`);
  return { types: new Set(['text', ...inputs]), tools, mode, sampling, signal: options.signal };
}
