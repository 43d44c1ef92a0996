// SPDX-License-Identifier: MIT
// What exports of other programs look like: ChatGPT's conversations.json, the JSON and JSONL of llama.cpp's page, and
// Open WebUI's JSON. Each reader makes nodes for export-tree.js, and counts what this page cannot take: images of which
// only the address is known, other files, and calls of tools, which this page does not have. Every value is foreign:
// each is checked before use.

const MOST_TEXT = 1_000_000;
const MOST_IMAGE = 64 * 2 ** 20;

const isObject = (value) => typeof value === 'object' && value !== null;
const list = (value) => (Array.isArray(value) ? value : []);
const fields = (value) => (isObject(value) ? value : {});
const string = (value) => (typeof value === 'string' ? value : '');
const key = (value) => (['string', 'number'].includes(typeof value) ? String(value) : '');

/** A time in ms, of one in seconds or in ms; 0: unknown. */
const timeOf = (value) => (Number.isFinite(value) && value > 0 ? (value < 1e11 ? value * 1000 : value) : 0);

function text(value, left) {
  const found = string(value);
  if (found.length > MOST_TEXT) left.cut++;
  return found.slice(0, MOST_TEXT);
}

/** An id of this page, made of a foreign one, or else of what the conversation is called and says. */
function idOf(foreign, ...described) {
  if (/^[\w-]{8,64}$/.test(foreign)) return foreign;
  let sum = 0xcbf29ce484222325n;
  for (const letter of described.join('\n').slice(0, 2000))
    sum = BigInt.asUintN(64, (sum ^ BigInt(letter.codePointAt(0))) * 0x100000001b3n);
  return `import-${sum.toString(36)}`;
}

function conversation({ id, title, created, changed, pinned, system }, nodes, leaf, left) {
  const first = nodes.find(({ role, content }) => role && content)?.content ?? '';
  const name = string(title).trim();
  return {
    id: idOf(key(id), name, created, first),
    title: name.slice(0, 80) || first.split('\n')[0].slice(0, 80),
    named: name !== '',
    pinned: pinned === true, created: timeOf(created), changed: timeOf(changed) || timeOf(created),
    ...(string(system).trim() && { preset: { system: text(system, left) } }), nodes, leaf: key(leaf),
  };
}

/** An image or a video out of a data URL; null if it is none, or only an address, which is counted. */
function mediumOf(url, name, left) {
  const [, mime, type] = /^data:((image|video)\/(?!svg)[\w.+-]{1,40});base64,/.exec(string(url).slice(0, 100)) ?? [];
  try {
    if (!mime || url.length > MOST_IMAGE) throw new TypeError('no file');
    const bytes = Uint8Array.from(atob(url.slice(url.indexOf(',') + 1)), (letter) => letter.charCodeAt(0));
    const called = string(name) || (type === 'image' ? 'Image' : 'Video');
    return { type, name: called, blob: new Blob([bytes], { type: mime }) };
  } catch {
    left.images++;
    return null;
  }
}

/** Cuts parts out of a text that begin and end with given words. @param {(part: string) => void} onPart */
function without(content, begin, end, onPart) {
  let rest = content;
  const kept = [];
  for (;;) {
    const from = rest.indexOf(begin);
    const to = from < 0 ? -1 : rest.indexOf(end, from);
    if (to < 0) return kept.join('') + rest;
    kept.push(rest.slice(0, from));
    onPart(rest.slice(from, to));
    rest = rest.slice(to + end.length);
  }
}

const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', '#x27': "'", '#39': "'" };
const decoded = (html) => html.replaceAll(/&(amp|lt|gt|quot|#x27|#39);/g, (_, name) => ENTITIES[name]);

const THOUGHT_HEAD = /^[^>]*>\s*(?:<summary>[^<]*<\/summary>)?/;

/** A reply whose text holds its thinking and its calls, as tags of the model or as folded parts of Open WebUI. */
function splitReply(content, left) {
  const thoughts = [];
  const said = without(content, '<details type="', '</details>', (part) => {
    if (!part.startsWith('<details type="reasoning"')) left.calls++;
    else thoughts.push(decoded(part.replace(THOUGHT_HEAD, '').replaceAll(/^> ?/gm, '')).trim());
  });
  const [, thought, rest] = /^\s*<think>([^]*?)<\/think>([^]*)$/.exec(said) ?? [];
  return { content: (rest ?? said).trim(), thinking: [...thoughts, thought?.trim()].filter(Boolean).join('\n\n') };
}

// --- ChatGPT ---

/** Marks of sources and the like, in letters of private use; those of links have a title and an address. */
const withoutMarks = (content) => content.replaceAll(/\ue200([^\ue200\ue201]{0,2000})\ue201/g, (_, inner) => {
  const [kind, title, url] = inner.split('\ue202');
  return kind === 'url' && url ? `[${title}](${url})` : '';
});

/** The parts of a message: its words, and its images, which an archive has beside it. */
function partsOf({ content_type: type, parts, text: code, language, thoughts }, left) {
  if (type === 'thoughts')
    return { thinking: list(thoughts).map((one) => text(fields(one).content, left)).filter(Boolean).join('\n\n') };
  if (type === 'code') {
    const word = /^[a-z]{2,20}$/.test(language) && language !== 'unknown' ? language : '';
    return { content: `\`\`\`${word}\n${text(code, left)}\n\`\`\`` };
  }
  if (!['text', 'multimodal_text'].includes(type)) return {};
  const words = [];
  const media = [];
  for (const part of list(parts)) {
    const { content_type: kind, asset_pointer: pointer, text: said } = fields(part);
    if (typeof part === 'string' || kind === 'audio_transcription') words.push(text(said ?? part, left));
    else if (kind === 'image_asset_pointer')
      media.push({ type: 'image', name: 'Image', pointer: string(pointer).replaceAll(/^[a-z-]+:\/\/|#.*/g, '') || '?' });
    else left.files++;
  }
  return { content: withoutMarks(words.filter(Boolean).join('\n\n')), ...(media.length && { media }) };
}

const HIDDEN = ['user_editable_context', 'model_editable_context', 'reasoning_recap'];

function chatGptNode([id, node], left) {
  const { parent, message } = fields(node);
  const { author, content, recipient = 'all', metadata, create_time: time } = fields(message);
  const about = { id, parent: key(parent), time: timeOf(time), role: '', content: '' };
  const { role } = fields(author);
  const { is_visually_hidden_from_conversation: isHidden, model_slug: model, attachments } = fields(metadata);
  const body = fields(content);
  if (role === 'tool' || (role === 'assistant' && recipient !== 'all')) {
    left.calls += role === 'assistant';
    left.images += list(body.parts).filter((part) => fields(part).content_type === 'image_asset_pointer').length;
    return about;
  }
  if (!['user', 'assistant'].includes(role) || isHidden === true || HIDDEN.includes(body.content_type)) return about;
  const isFile = ({ mime_type: type, mimeType = type }) => !string(mimeType).startsWith('image/');
  left.files += list(attachments).map(fields).filter(isFile).length;
  const { media, ...said } = partsOf(body, left);
  if (role === 'user') return { ...about, ...said, role, ...(media && { media }) };
  left.images += media?.length ?? 0;
  return { ...about, ...said, role, model: string(model) };
}

const chatGpt = (value, left) => conversation(
  { id: value.conversation_id ?? value.id, title: value.title, created: value.create_time, changed: value.update_time },
  Object.entries(value.mapping).map((one) => chatGptNode(one, left)), value.current_node, left,
);

// --- llama.cpp ---

/** What is attached to a message: texts, documents as their text, images, and what this page does not take. */
function attachedTo(extra, left) {
  const found = { media: [], texts: [] };
  for (const { name, content, base64Url, base64Data, mimeType } of list(extra).map(fields)) {
    const url = base64Url ?? (/^video\//.test(mimeType) ? `data:${mimeType};base64,${base64Data}` : '');
    const medium = url ? mediumOf(url, name, left) : null;
    if (medium) found.media.push(medium);
    else if (typeof content === 'string') found.texts.push({ name: string(name) || 'Text', text: text(content, left) });
    else if (!url) left.files++;
  }
  return Object.fromEntries(Object.entries(found).filter(([, all]) => all.length));
}

function countCalls(calls) {
  try {
    return list(typeof calls === 'string' && calls ? JSON.parse(calls) : calls).length;
  } catch {
    return 1;
  }
}

function llamaNode(value, left) {
  const { id, parent, role, content, thinking, reasoningContent, toolCalls, extra, timestamp, model } = fields(value);
  const about = { id: key(id), parent: key(parent), time: timeOf(timestamp), role: '', content: '' };
  if (role === 'user') return { ...about, role, content: text(content, left), ...attachedTo(extra, left) };
  if (role !== 'assistant') return about;
  left.calls += countCalls(toolCalls);
  const said = splitReply(text(content, left), left);
  const thought = text(reasoningContent ?? thinking, left);
  return { ...about, role, model: string(model), ...said, thinking: thought || said.thinking };
}

function llama({ conv, messages }, left) {
  const { id, name, lastModified, currNode, pinned } = fields(conv);
  const isSystem = ({ role, content }) => role === 'system' && string(content).trim();
  const { content: system } = messages.map(fields).find(isSystem) ?? {};
  const created = messages.map((one) => fields(one).timestamp).find((time) => time > 0);
  return conversation({ id, title: name, created, changed: lastModified, pinned, system },
    messages.map((one) => llamaNode(one, left)), currNode, left);
}

/** Conversations of JSONL: a record of the conversation, then those of its messages. */
function sessions(lines) {
  const found = [];
  for (const { type, message, ...conv } of lines.map(fields)) {
    if (type === 'session') found.push({ conv, messages: [] });
    else if (type === 'message') found.at(-1)?.messages.push(message);
  }
  return found;
}

// --- Open WebUI ---

function openWebUiNode(id, value, left) {
  const { parentId, role, content, timestamp, model, files } = fields(value);
  const about = { id, parent: key(parentId), time: timeOf(timestamp), role: '', content: '' };
  if (role === 'assistant')
    return { ...about, role, model: string(model), ...splitReply(text(content, left), left) };
  if (role !== 'user') return about;
  const media = [];
  const texts = [];
  for (const { type, url, name, file } of list(files).map(fields)) {
    const { content: said } = fields(fields(file).data);
    if (type === 'image') media.push(mediumOf(url, name, left));
    else if (typeof said === 'string') texts.push({ name: string(name) || 'Text', text: text(said, left) });
    else left.files++;
  }
  const shown = media.filter(Boolean);
  const parts = { ...(shown.length && { media: shown }), ...(texts.length && { texts }) };
  return { ...about, role, content: text(content, left), ...parts };
}

function openWebUi({ id, title, chat, created_at: created, updated_at: changed, pinned }, left) {
  const { history, title: called, system, params } = chat;
  const nodes = Object.entries(history.messages).map(([name, one]) => openWebUiNode(name, one, left));
  const about = { id, title: called ?? title, created, changed, pinned, system: fields(params).system ?? system };
  return conversation(about, nodes, history.currentId, left);
}

// --- all of them ---

const FORMATS = [
  [({ mapping }) => isObject(mapping), chatGpt],
  [({ conv, messages }) => isObject(conv) && Array.isArray(messages), llama],
  [({ chat }) => isObject(fields(fields(chat).history).messages), openWebUi],
];

/**
 * @param {any} value of a JSON file, or {lines} of JSONL
 * @param {{images: number, files: number, calls: number, cut: number}} left counts what is not taken
 * @returns {?object[]} conversations with nodes instead of messages; null if none is recognised
 */
export function read(value, left) {
  const { lines, type } = fields(value);
  const all = lines || type === 'session' ? sessions(lines ?? [value]) : [value].flat();
  const found = all.filter(isObject).flatMap((one) => {
    const [, reader] = FORMATS.find(([is]) => is(one)) ?? [];
    return reader ? [reader(one, left)] : [];
  });
  return found.length ? found : null;
}
