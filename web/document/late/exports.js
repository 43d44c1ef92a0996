// SPDX-License-Identifier: MIT
// Reads the conversations of a file in a worker: those of this page, or what ChatGPT, llama.cpp's page and Open WebUI
// export (export-formats.js). The content tells the format, not the name. A ZIP archive holds one file of them or many.
// The file is hostile: its size, its conversations and their messages are limited, and messages that follow each other
// in a circle are no conversation. What cannot be taken is counted, so that the page can say it.
import { Refusal, serve } from '../refusal.js';
import { Zip } from '../zip.js';
import { read } from './export-formats.js';
import { messagesOf } from './export-tree.js';

/** Most bytes of a file, and of all that an archive unpacks to. */
const MOST = 384 * 2 ** 20;

const MOST_CONVERSATIONS = 20_000;

/** Entries of an archive that hold conversations: ChatGPT's, in one part or several, and llama.cpp's. */
const ENTRY = /(?:^|\/)(?:conversations(?:-\d+)?\.json|[^/]*\.jsonl)$/i;

const unknown = () =>
  new Refusal('{1} holds no conversations that this page can read: of quern, ChatGPT, llama.cpp or Open WebUI.');

/** The value of a JSON text, or the values of its lines if each line is one. */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    // not one value
  }
  try {
    return { lines: text.split('\n').filter((line) => line.trim()).map((line) => JSON.parse(line)) };
  } catch {
    throw unknown();
  }
}

/** The images that an archive has beside the conversations: a finder by the beginning of their names. */
function imagesIn(zip) {
  const names = zip.names.filter((name) => !ENTRY.test(name));
  const kinds = { '89504e47': 'image/png', ffd8ff: 'image/jpeg', '47494638': 'image/gif', 52494646: 'image/webp' };
  return async (pointer) => {
    const name = names.find((one) => one.split('/').at(-1).startsWith(pointer));
    const found = name && await zip.blob(name).catch(() => null);
    if (!found) return null;
    const head = [...new Uint8Array(await found.slice(0, 4).arrayBuffer())]
      .map((byte) => byte.toString(16).padStart(2, '0'))
      .join('');
    const [, type] = Object.entries(kinds).find(([begin]) => head.startsWith(begin)) ?? [];
    return type ? found.slice(0, found.size, type) : null;
  };
}

/** Puts the files in the place of pointers to them, and counts those that are not there. */
async function findImages(messages, find, left) {
  for (const message of messages) {
    if (!message.media) continue;
    const media = await Promise.all(message.media.map(async ({ pointer, ...medium }) => {
      if (!pointer) return medium;
      const blob = await find(pointer);
      if (!blob) left.images++;
      return blob && { ...medium, blob };
    }));
    message.media = media.filter(Boolean);
  }
}

/** A conversation in the form that this page exports, or null. */
async function converted({ nodes, leaf, ...entry }, find, left) {
  const found = messagesOf(nodes, leaf, entry.created);
  if (!found) {
    left.circles++;
    return null;
  }
  await findImages(found.messages, find, left);
  return { ...entry, ...found };
}

serve(async ({ file }) => {
  if (file.size > MOST) throw new Refusal('{1} is larger than {2} MB, so it is not read.', MOST / 2 ** 20);
  const isArchive = await file.slice(0, 4).text() === 'PK\x03\x04';
  const zip = isArchive ? await Zip.open(file, MOST) : null;
  const find = zip ? imagesIn(zip) : async () => null;
  const names = zip ? zip.names.filter((name) => ENTRY.test(name)) : [''];
  const left = { images: 0, files: 0, calls: 0, cut: 0, circles: 0 };
  const conversations = [];
  for (const name of names) {
    const value = parsed(zip ? await zip.text(name) : await file.text());
    const own = value?.quern === 1 && Array.isArray(value.conversations) ? value.conversations : null;
    const found = own ?? read(value, left);
    if (!found) throw unknown();
    if (conversations.length + found.length > MOST_CONVERSATIONS)
      throw new Refusal('{1} has more than {2} conversations, so it is not read.', MOST_CONVERSATIONS);
    for (const one of found) conversations.push(own ? one : await converted(one, find, left));
  }
  if (!names.length) throw unknown();
  return { conversations: conversations.filter(Boolean), left };
});
