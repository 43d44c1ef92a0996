// SPDX-License-Identifier: MIT
// A conversation as a file of Markdown, for reading. Fetched with the first one that is saved so.
import { say } from '../../shell/words.js';
import { fenced } from '../prompt.js';
import { pathTo } from '../tree.js';

/** The text before some calls, and the calls. */
function stepText({ content, calls }) {
  const indented = (text) => `    ${text.replaceAll('\n', '\n    ')}`;
  const called = calls.map(
    ({ name, arguments: given, result = '' }) => `*(${say`called ${name}`})*\n\n${indented(given)}\n${indented(result)}`,
  );
  return [...(content.trim() ? [content.trim()] : []), ...called].join('\n\n');
}

/** A conversation as it is shown. */
export function asMarkdown({ entry, messages }) {
  const parts = pathTo(messages, entry.leaf).map(({ role, content, model, media = [], texts = [], steps = [] }) => {
    const called = ({ type, name }) => (type === 'image' ? say`image: ${name}` : say`video: ${name}`);
    const shown = media.map((medium) => `*(${called(medium)})*\n\n`).join('');
    const attached = texts.map((text) => `${fenced(text)}\n\n`).join('');
    const before = steps.map((step) => `${stepText(step)}\n\n`).join('');
    return `## ${role === 'user' ? say`You` : model || say`Reply`}\n\n${shown}${attached}${before}${content.trim()}\n`;
  });
  return [`# ${entry.title}\n`, ...parts].join('\n');
}
