// SPDX-License-Identifier: MIT
// The one conversation in localStorage, checked field by field when it is read back.
import { read, write } from '../shell/storage.js';

const KEY_CHAT = 'quern:chat';

/** Characters kept of a conversation, about 1 MB as localStorage counts; the oldest messages go first. */
const MAX_CHAT = 500_000;
const MAX_MESSAGES = 500;

const text = (value) => (typeof value === 'string' ? value : '');
const size = (message) => message.content.length + text(message.thinking).length;

/** One stored message with exactly the known fields, or null. */
function checkMessage(value) {
  if (!value || (value.role !== 'user' && value.role !== 'assistant') || typeof value.content !== 'string') return null;
  if (value.role === 'user') return { role: 'user', content: value.content };
  const thoughtMs = Number.isFinite(value.thoughtMs) && value.thoughtMs >= 0 ? value.thoughtMs : 0;
  return { role: 'assistant', content: value.content, thinking: text(value.thinking), thoughtMs, note: text(value.note).slice(0, 200) };
}

/** The newest messages that fit, starting with one of the user's. */
function newest(messages) {
  let room = MAX_CHAT;
  let first = messages.length;
  while (first > 0 && messages.length - first < MAX_MESSAGES && (room -= size(messages[first - 1])) >= 0) first--;
  const kept = messages.slice(first);
  const start = kept.findIndex((message) => message.role === 'user');
  return start < 0 ? [] : kept.slice(start);
}

/** @returns {object[]} the stored conversation, empty when there is none that can be read */
export function readChat() {
  const stored = read(KEY_CHAT);
  if (stored?.version !== 1 || !Array.isArray(stored.messages)) return [];
  return newest(stored.messages.slice(-MAX_MESSAGES).map(checkMessage).filter(Boolean));
}

/** @returns {boolean} whether it was stored */
export const writeChat = (messages) => write(KEY_CHAT, { version: 1, messages: newest(messages.map(checkMessage)) });
