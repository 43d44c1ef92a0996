// SPDX-License-Identifier: MIT
// The report of `quern info` as text, in two columns: names and facts.

import { oneLine } from './cli-terminal.js';
import { bytesText, columns, countText, grouped, plural } from './cli-units.js';

const TOKENIZERS = { gpt2: 'byte-level BPE', scores: 'pairs by their scores, of a .tokenizer file' };

/** A limit as text. That of a page is slightly below 4 GiB, because the engine's own code takes some memory. */
const limitText = (n) => `${Math.round(n / 2 ** 30 * 10) / 10} GiB`;

function file({ format, files, fileBytes }) {
  const kind = { gguf: 'GGUF', ajc1: 'qwen3.c checkpoint' }[format] ?? format;
  return [`${kind}, ${bytesText(fileBytes)}${files > 1 ? ` in ${files} files` : ''}`];
}

function parameters({ parameters: all, activeParameters: active }) {
  return [all === active ? countText(all) : `${countText(all)}, of which ${countText(active)} are used per token`];
}

function weights({ types }) {
  const rows = Object.entries(types)
    .sort(([, a], [, b]) => b.bytes - a.bytes)
    .map(([name, { tensors, parameters: n, bytes }]) => [
      name,
      plural(tensors, 'tensor'),
      countText(n),
      bytesText(bytes),
    ]);
  return columns(rows, [1, 2, 3]);
}

const attention = ({ heads, kvHeads, headDim }) => [
  `${plural(heads, 'head')} of ${headDim}, ${grouped(kvHeads)} for keys and values`,
];

function layers({ layers: n, dim, ffnDim, experts, expertsUsed, expertDim }) {
  const dense = ffnDim && !experts ? `, feed-forward ${grouped(ffnDim)}` : '';
  const line = `${grouped(n)}, ${grouped(dim)} wide${dense}`;
  return experts
    ? [line, `${plural(experts, 'expert')} of ${grouped(expertDim)}, ${grouped(expertsUsed)} used per token`]
    : [line];
}

const vocabulary = ({ vocabSize, tied }) => [
  `${grouped(vocabSize)} rows, ${tied ? 'the embedding is the output head too' : 'the output head is a matrix of its own'}`,
];

function context({ contextLength, ropeFactor, ropeTheta }) {
  const yarn = ropeFactor === 1 ? '' : `, extended ${ropeFactor} times by YaRN`;
  return [`${plural(contextLength, 'token')}${yarn} (RoPE base ${grouped(ropeTheta)})`];
}

/** The state beside the KV cache, of which each running reply and each remembered conversation has one or two. */
const state = ({ stateBytes: n, snapshots }) => (n ? [`${bytesText(n)} beside the cache; ${snapshots} remembered`] : []);

const drafts = ({ drafts: has }) => (has ? ['by the MTP block of the file, a token at a time'] : []);

const tokenizer = ({ tokenizer: kind, tokens }) => [`${TOKENIZERS[kind] ?? kind}, ${plural(tokens, 'token')}`];

/** The encoder, and the cost of images. */
function vision({ vision: facts }) {
  if (!facts) return [];
  const { layers: n, dim, heads, parameters: all, fileBytes, maxPixels, maxTokens, scratchBytes, deepstack } = facts;
  const stack = deepstack.length ? `, DeepStack after blocks ${deepstack.join(', ')}` : '';
  return [
    `${plural(n, 'block')}, ${grouped(dim)} wide, ${plural(heads, 'head')}${stack}`,
    `${countText(all)} parameters, ${bytesText(fileBytes)}`,
    `images of ${grouped(maxPixels)} pixels at most (${plural(maxTokens, 'token')}); ${bytesText(scratchBytes)} to encode`,
  ];
}

const assumed = ({ assumed: all }) => Object.entries(all).map(([key, value]) => `${key} is taken to be ${value}`);

function license({ license: id, licenseName, licenseLink }) {
  const named = [id, licenseName].filter((text) => text !== '').join(': ');
  return [named, licenseLink].filter((text) => text !== '').concat(named || licenseLink ? [] : ['not stated']);
}

/** The memory for running the model with the given context, and the largest contexts that fit. */
function memory({ plan, contextSize, kv, contextLength }) {
  const parts = columns([
    ['weights', bytesText(plan.weights)],
    ['context', bytesText(plan.cache)],
    ['scratch', bytesText(plan.scratch)],
    ['total', bytesText(plan.total)],
  ], [1]);
  const most = ({ largestContext: n }) => (n === 0 ? 'none' : n === contextLength ? `${grouped(n)} (all)` : grouped(n));
  const caches = columns(
    [['cache', 'a token', `largest context in ${limitText(plan.limit)}`]].concat(
      ['f16', 'q8']
        .filter((name) => plan[name].bytesPerToken)
        .map((name) => [name, bytesText(plan[name].bytesPerToken), most(plan[name])]),
    ),
    [1, 2],
  );
  const fits = plan.total <= plan.limit ? '' : `, more than the limit of ${limitText(plan.limit)}`;
  return [`with a context of ${plural(contextSize, 'token')}, cached as ${kv}${fits}:`, ...parts, '', ...caches];
}

const SECTIONS = {
  file,
  architecture: ({ architecture }) => [architecture],
  parameters,
  weights,
  layers,
  attention,
  vocabulary,
  context,
  state,
  drafts,
  tokenizer,
  'chat template': ({ chatTemplate }) => [chatTemplate ? 'yes' : 'no (ChatML is used)'],
  vision,
  assumed,
  'quantized by': ({ quantizedBy }) => (quantizedBy ? [quantizedBy] : []),
  license,
  memory,
};

/** @param {object} facts from inspect.js @returns {string} */
export function infoText(facts) {
  const width = Math.max(...Object.keys(SECTIONS).map((name) => name.length)) + 2;
  const lines = Object.entries({ ...(facts.name && { name: () => [facts.name] }), ...SECTIONS })
    .flatMap(([name, section]) => section(facts).map((line, i) => (i ? '' : name).padEnd(width) + oneLine(line)));
  return lines.map((line) => `${line.trimEnd()}\n`).join('');
}
