// SPDX-License-Identifier: MIT
// What sessions of the Prompt API are made with, checked in the order in which browsers check it: kinds of content,
// languages, sampling, tools.

import { exception } from './prompt-input.js';
import { isObject } from '../shared/kinds.js';

/** Kinds of content. What tools are called with and what they gave is written by sessions themselves. */
const TYPES = ['text', 'image', 'audio', 'tool-call', 'tool-response'];
const WRITTEN = ['text', 'tool-call'];

/**
 * Kinds and languages that options ask for. A type that is none is a TypeError, a tag that is none a RangeError; every
 * language is read.
 */
function typesOf(expected) {
  return Array.from(expected ?? [], ({ type, languages }) => {
    if (!TYPES.includes(type)) throw new TypeError(`There is no type ${String(type).slice(0, 64)} of content.`);
    if (languages !== undefined) Intl.getCanonicalLocales(Array.from(languages));
    return type;
  });
}

/** Why a model cannot do what options ask for; empty: it can. */
function missing(model, inputs, outputs) {
  if (inputs.includes('audio')) return 'no model of quern hears';
  if (inputs.includes('image') && !model.info.vision)
    return 'this model has no vision: load it with its projector (`vision`)';
  return outputs.every((type) => WRITTEN.includes(type)) ? '' : 'models of quern write texts alone';
}

// --- sampling ---

/** Options of chat() by name; `balanced` is what the model's own card or file advises. */
const MODES = {
  'most-predictable': { temperature: 0 },
  predictable: { temperature: 0.3 },
  'slightly-predictable': { temperature: 0.5 },
  balanced: {},
  'slightly-creative': { temperature: 0.9, topP: 0.9 }, creative: { temperature: 1, topP: 0.95, topK: 40 },
  'most-creative': { temperature: 1.3, topP: 1, topK: 100 },
};

/** What Qwen's card says, where the file says nothing. */
const CARD = { topK: 20, temperature: 0.7 };
const MOST = { topK: 1000, temperature: 2 };
const LEAST = { topK: 1, temperature: 0 };

/** Documented in prompt-api.d.ts. */
export function paramsOf({ info: { sampling } }) {
  const { topK, temperature } = { ...CARD, ...sampling };
  return { defaultTopK: topK, maxTopK: MOST.topK, defaultTemperature: temperature, maxTemperature: MOST.temperature };
}

const isGiven = (value) => value !== undefined && value !== null;

/** @returns {string | null} null: numbers are given in its place */
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

/** What a tool gave: a text, or a list of content. */
function givenBack(value) {
  if (!Array.isArray(value) || !value.every((part) => part?.type === 'text')) return value;
  return value.map((part) => part.value).join('');
}

/** A copy, so that what JSON cannot say fails here, with what was thrown. */
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

/** Tools as run() has them, or null. */
function toolsOf(tools) {
  const list = Array.from(tools, toolOf);
  const names = new Set(list.map(([name]) => name));
  if (names.size < list.length) throw new TypeError('Two tools have the same name.');
  return list.length ? Object.fromEntries(list) : null;
}

// --- all of it ---

/** @returns {boolean} whether a session could be made: what only create() looks at is not looked at here */
export function canMake(model, options) {
  const inputs = typesOf(options.expectedInputs);
  const problem = missing(model, inputs, typesOf(options.expectedOutputs));
  modeOf(options);
  return !problem;
}

/** What a session is made with. */
export function setupOf(model, options) {
  const [inputs, outputs] = [typesOf(options.expectedInputs), typesOf(options.expectedOutputs)];
  const { mode, sampling } = samplingOf(options);
  const tools = toolsOf(options.tools ?? []);
  const problem = missing(model, inputs, outputs);
  if (problem) throw exception('NotSupportedError', `This session cannot be made: ${problem}.`);
  return { types: new Set(['text', ...inputs]), tools, mode, sampling, signal: options.signal };
}
