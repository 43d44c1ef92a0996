// SPDX-License-Identifier: MIT
// The stored fields of a conversation, each checked when it comes from outside: other pages of this origin share the
// storage, and anybody may have written a file.
import { oneLine } from '../shell/format.js';
import { say } from '../shell/words.js';

const TITLE = 80;
const SAVED = 'chat/';

/** The last moment, in ms, that a Date can represent. */
const LATEST = 8.64e15;

const text = (value, most = 1e7) => (typeof value === 'string' ? value.slice(0, most) : '');
const number = (value) => (Number.isFinite(value) && value >= 0 ? value : 0);
const date = (value) => (number(value) <= LATEST ? number(value) : 0);
const isId = (value) => typeof value === 'string' && /^[\w-]{1,64}$/.test(value);

/** An image or video with its original file, or null. `call`: id of the call whose result it belongs to. */
function checkMedium(value) {
  const isKnown = ['image', 'video'].includes(value?.type) && value.blob instanceof Blob;
  if (!isKnown) return null;
  const { type, blob, call } = value;
  const about = typeof call === 'string' ? { call: text(call, 100) } : {};
  return { type, name: oneLine(text(value.name), TITLE), blob, ...about };
}

/** A text that was attached, with the passages that the model reads instead of it, if any; or null. */
function checkAttached(value) {
  if (typeof value?.text !== 'string') return null;
  const passages = text(value.passages);
  return { name: oneLine(text(value.name), TITLE) || say`Text`, text: text(value.text), ...(passages && { passages }) };
}

const checkAll = (values, check) => (Array.isArray(values) ? values.map(check).filter(Boolean) : []);

/** The text before some calls, and the calls. */
function checkStep(value) {
  const calls = (Array.isArray(value?.calls) ? value.calls : []).slice(0, 64).map((call) => ({
    id: text(call?.id, 100),
    name: oneLine(text(call?.name), TITLE),
    arguments: text(call?.arguments),
    failed: call?.failed === true,
    ...(typeof call?.result === 'string' && { result: text(call.result) }),
  }));
  return {
    content: text(value?.content),
    thinking: text(value?.thinking),
    calls: calls.filter(({ id, name }) => id && name),
  };
}

/** A message with exactly the known fields, or null. `writing`: it was not finished. */
export function checkMessage(value) {
  if (!isId(value?.id) || !['user', 'assistant'].includes(value.role) || typeof value.content !== 'string') return null;
  const { id, role } = value;
  const common = { id, parent: isId(value.parent) ? value.parent : '', role, content: text(value.content) };
  const media = checkAll(value.media, checkMedium);
  if (media.length) common.media = media;
  if (role === 'user') {
    const texts = checkAll(value.texts, checkAttached);
    return { ...common, ...(texts.length && { texts }) };
  }
  const steps = Array.isArray(value.steps) ? { steps: value.steps.slice(0, 100).map(checkStep) } : {};
  return {
    ...common,
    ...steps,
    thinking: text(value.thinking),
    thoughtMs: number(value.thoughtMs),
    note: text(value.note, 200),
    model: oneLine(text(value.model), TITLE),
    speed: number(value.speed),
    writing: value.writing === true,
  };
}

/** Kinds of the settings of replies (shell/settings.js), which decides what their values may be. */
const PRESET = {
  system: 'string', temperature: 'number', topP: 'number', topK: 'number', maxTokens: 'number', seed: 'number',
  tools: 'string', thinking: 'boolean',
};

/** The settings of a conversation's replies; null: it has none of its own. */
function checkPreset(value) {
  if (typeof value !== 'object' || value === null) return null;
  const known = Object.keys(PRESET).filter((name) => typeof value[name] === PRESET[name]);
  return Object.fromEntries(known.map((name) => [name, name === 'system' ? text(value.system, 20_000) : value[name]]));
}

/**
 * The facts about a conversation beside its messages, or null. `named`: the visitor wrote the title; `titled`: a model
 * did; `first`: the first message that the model still reads.
 */
export function checkEntry(value) {
  if (!isId(value?.id)) return null;
  const { id } = value;
  return {
    id,
    title: oneLine(text(value.title), TITLE),
    named: value.named === true,
    titled: value.titled === true,
    pinned: value.pinned === true,
    created: date(value.created),
    changed: date(value.changed),
    leaf: isId(value.leaf) ? value.leaf : '',
    first: isId(value.first) ? value.first : '',
    preset: checkPreset(value.preset),
    deleted: date(value.deleted),
  };
}

/** A text, or undefined for any other value. */
export const checkText = (value) => (typeof value === 'string' ? value : undefined);

/**
 * The name under which models store their cache of a conversation, and the id in such a name; '' if the name is not of
 * this page.
 */
export const savedName = (id) => SAVED + id;
export const savedId = (name) => (name.startsWith(SAVED) ? name.slice(SAVED.length) : '');

/** The title of a conversation with this first message, until a model or the visitor names it. */
export const titleOf = ({ content = '', texts = [] } = {}) =>
  oneLine(content.trim().split('\n')[0] || texts[0]?.name, TITLE) || say`Conversation`;

/** Text for searching: without case and accents. */
export const folded = (content) => content.normalize('NFKD').replaceAll(/\p{M}+/gu, '').toLowerCase();
