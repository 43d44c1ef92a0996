// SPDX-License-Identifier: MIT
// Presets: named settings of replies (system prompt, sampling, tools, thinking). They are chosen, made, renamed,
// deleted and shared at the head of the settings, which also says whether they belong to a conversation (settings.js).
// A preset says whether tools are used; which tools are on belongs to the device (tools/choice.js), so that no link
// switches on what runs programs or reaches servers. A preset in a link (`#preset=JSON`) is shown first, and taken over
// only if the visitor says so. Which preset is in use is not stored: it is the one that has the present values. This
// file is fetched with the settings, or with such a link.
import { announce, button, byId, element, isComposed } from './dom.js';
import { oneLine } from './format.js';
import { showSheet } from './sheet.js';
import { read, write } from './storage.js';
import { say } from './words.js';

const KEY = 'quern:presets';
const MOST = 100;

/** Fields of the settings that a preset has, and their words in a dialog. */
const FIELDS = {
  system: say`System prompt`, temperature: say`Temperature`, topP: 'Top-p', topK: 'Top-k', maxTokens: say`Longest reply`,
  seed: say`Seed`, tools: say`Tools`, thinking: say`Thinking`,
};

/** Whether a value is one that the settings' field of this name allows. */
function isAllowed(name, value) {
  const field = byId(`set-${name}`);
  if (name === 'thinking') return value === true;
  if (field.type !== 'number') {
    const isLong = typeof value !== 'string' || value === '' || value.length > 20_000;
    return !isLong && (!field.options || [...field.options].some((option) => option.value === value));
  }
  const isWhole = Number.isInteger(Number(field.step));
  return (isWhole ? Number.isInteger(value) : Number.isFinite(value)) && value >= field.min && value <= field.max;
}

/** A preset from outside (storage, link) with exactly the known fields, or null. */
function checked(value) {
  const name = typeof value?.name === 'string' ? oneLine(value.name, 80) : '';
  const fields = Object.keys(FIELDS).filter((key) => isAllowed(key, value?.[key]));
  return name ? { name, ...Object.fromEntries(fields.map((key) => [key, value[key]])) } : null;
}

const all = () => {
  const stored = read(KEY);
  return (Array.isArray(stored) ? stored : []).map(checked).filter(Boolean).slice(0, MOST);
};

/** The values of a preset, as a text that is the same for the same values. */
const valuesOf = (preset) =>
  JSON.stringify(Object.keys(FIELDS).map((key) => (preset[key] === 0 ? 0 : preset[key] || null)));

const linkTo = (preset) => {
  const url = new URL(location.href);
  url.search = '';
  url.hash = `preset=${encodeURIComponent(JSON.stringify(preset))}`;
  return url.href;
};

const WORDS = { auto: say`If the model wants`, required: say`With each question`, true: say`On` };

const readable = (value) => WORDS[value] ?? String(value);

/**
 * Shows the presets at the head of the settings.
 * @param {{preset: object, apply: (preset: object) => void, open: () => Promise<void>}} settings
 * @param {...(string | Node)} said a sentence about what has just happened
 */
export function showPresets(settings, ...said) {
  const presets = all();
  const now = valuesOf(settings.preset);
  const at = presets.findIndex((preset) => valuesOf(preset) === now);
  const isOwn = now === valuesOf({});
  const select = element('select', { id: 'preset' });
  select.append(...(at < 0 && !isOwn ? [element('option', { value: 'now' }, say`The values below`)] : []),
    element('option', { value: 'own' }, say`The model’s own`),
    ...presets.map(({ name }, i) => element('option', { value: i }, name)));
  select.value = at < 0 ? (isOwn ? 'own' : 'now') : at;
  select.onchange = () => take(settings, presets[select.value] ?? { name: say`The model’s own` });
  const link = (words, action) => button(words, action, 'link-button');
  const row = at < 0 ? [...(isOwn ? [] : [link(say`Save as a preset`, () => askName(settings, presets.length))])] : [
    link(say`Rename`, () => askName(settings, at)),
    link(say`Copy a link`, async () => {
      const worked = await navigator.clipboard.writeText(linkTo(presets[at])).then(() => true, () => false);
      showPresets(settings, worked ? say`The link is copied.` : say`Copying is not allowed here.`);
    }),
    link(say`Delete`, () => remove(settings, at)),
  ];
  byId('presets').replaceChildren(...scope(settings), element('label', { htmlFor: 'preset' }, say`Preset`), select,
    element('div', { className: 'preset-row' }, ...row),
    element('p', { className: 'hint', hidden: !said.length }, ...said));
  if (said.length) announce(said[0]);
}

/** A sentence about the conversations that have these settings, and a button that gives them to new ones. */
function scope(settings) {
  const words = settings.isOfTalk
    ? say`These settings belong to this conversation, which keeps them. “At the next load” is for all.`
    : say`New conversations begin with these settings. Each keeps what it was last used with.`;
  const share = button(say`Begin new conversations with them, too`, () => {
    settings.share();
    showPresets(settings, say`New conversations begin with these settings, too.`);
    byId('preset').focus();
  }, 'link-button');
  const row = element('div', { className: 'preset-row' }, share);
  return [element('p', { className: 'hint' }, words), ...(settings.isOfTalk && settings.differs ? [row] : [])];
}

/** Uses a preset. A button brings the values before back. */
function take(settings, preset) {
  const before = settings.preset;
  settings.apply(preset);
  showPresets(settings, say`In use: ${preset.name}.`, ' ', button(say`Undo`, () => {
    settings.apply(before);
    showPresets(settings, say`The settings are as they were.`);
  }, 'link-button'));
  byId('preset').focus();
}

/** Stores the presets, and shows them with a sentence. */
function store(settings, presets, ...said) {
  const isStored = write(KEY, presets.slice(0, MOST));
  showPresets(settings, ...(isStored ? said : [say`This browser does not let the page store presets.`]));
}

/** Asks for the name of the preset at a place; behind the last one is a new one. */
function askName(settings, at) {
  const field = element('input', { id: 'preset-name', maxLength: 80, value: all()[at]?.name ?? '', dir: 'auto' });
  field.setAttribute('aria-label', say`Name of the preset`);
  const keep = () => {
    const presets = all();
    const called = oneLine(field.value, 80);
    if (called) presets[at] = { ...checked({ ...settings.preset, name: called }) };
    store(settings, presets, called ? say`Stored: ${called}.` : say`Without a name nothing is stored.`);
    byId('preset').focus();
  };
  field.onkeydown = (event) => {
    if (isComposed(event) || !['Enter', 'Escape'].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key === 'Enter') keep();
    else showPresets(settings);
  };
  byId('presets').querySelector('.preset-row:last-of-type').replaceChildren(field, button(say`Store`, keep));
  field.select();
}

function remove(settings, at) {
  const presets = all();
  const [gone] = presets.splice(at, 1);
  const undo = () => {
    const now = all();
    now.splice(at, 0, gone);
    store(settings, now, say`${gone.name} is back.`);
    byId('preset').focus();
  };
  const back = button(say`Undo`, undo, 'link-button');
  store(settings, presets, say`${gone.name} is deleted; its values stay in use.`, ' ', back);
  byId('preset').focus();
}

/** Shows the preset of a link, and asks whether to take it over. @param {string} text behind `#preset=` */
export function askPreset(settings, text) {
  let preset = null;
  try {
    preset = checked(JSON.parse(decodeURIComponent(text)));
  } catch {
    // no JSON
  }
  const title = preset ? say`Use the preset “${preset.name}”?` : say`This link holds no preset that can be read.`;
  const rows = Object.keys(FIELDS).filter((key) => preset?.[key] !== undefined)
    .map((key) => element('div', {},
      element('dt', {}, FIELDS[key]), element('dd', { dir: 'auto' }, readable(preset[key]))));
  const use = button(say`Use it`, async () => {
    const presets = all();
    const isKnown = presets.some((one) => one.name === preset.name && valuesOf(one) === valuesOf(preset));
    if (!isKnown) write(KEY, [...presets, preset].slice(-MOST));
    dialog.close();
    await settings.open();
    take(settings, preset);
  }, 'button primary');
  const dialog = showSheet('preset', title,
    element('dl', { className: 'facts preset-facts', hidden: !preset }, ...rows),
    element('div', { className: 'stack' },
      element('p', { className: 'hint', hidden: !preset }, say`All else is the model’s own. You can take this back.`),
      element('div', { className: 'actions' }, ...(preset ? [use] : []), button(say`Cancel`, () => dialog.close()))));
}
