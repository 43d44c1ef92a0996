// SPDX-License-Identifier: MIT
// The reference: the declarations of js/index.d.ts as pages. Only this file decides on which page a name is described;
// a name without a page goes on the last one.

import { escape } from './html.mjs';
import { heading, renderMarkdown } from './markdown.mjs';

const PAGES = [
  {
    file: 'load',
    title: 'Loading',
    names: [
      'load',
      'Source',
      'Repository',
      'LoadOptions',
      'VisionOptions',
      'Progress',
      'Variant',
      'Address',
      'Quantize',
      'support',
      'Support',
    ],
  },
  {
    file: 'model',
    title: 'The model',
    names: [
      'Model',
      'CallOptions',
      'TextOptions',
      'PromptOptions',
      'EmbedOptions',
      'Vectors',
      'RankOptions',
      'Rank',
      'Look',
      'Info',
      'CacheChoice',
    ],
  },
  {
    file: 'reply',
    title: 'Replies',
    names: [
      'Message',
      'Part',
      'ImageSource',
      'PixelSource',
      'VideoSource',
      'ChatOptions',
      'CompleteOptions',
      'Reply',
      'ReplyEvent',
      'Result',
    ],
  },
  {
    file: 'models',
    title: 'Stored models',
    names: ['models', 'Models', 'StoredModel', 'CacheOptions', 'DownloadOptions', 'Kept', 'Usage'],
  },
  { file: 'store', title: 'Stores', names: ['Store', 'StoreFile'] },
  { file: 'profile', title: 'Profiles', names: ['Profile', 'PhaseCost', 'Cost'] },
  { file: 'errors', title: 'Errors', names: ['QuernError', 'ErrorCode'] },
];

const REST = { file: 'more', title: 'More', names: [] };

/** Options that repeat an option of another type with the same name. */
const SAME_AS = { DownloadOptions: 'LoadOptions' };

/** @returns {{path: string, title: string, declarations: object[]}[]} */
export function referencePages(declarations) {
  const known = new Set(PAGES.flatMap(({ names }) => names));
  const rest = { ...REST, names: declarations.map(({ name }) => name).filter((name) => !known.has(name)) };
  const pages = [...PAGES, rest].map(({ file, title, names }) => ({
    path: `reference/${file}.html`,
    title,
    declarations: names.flatMap((name) => declarations.filter((one) => one.name === name)),
  }));
  return pages.filter(({ declarations: found }) => found.length);
}

/** All members of a declaration, nested ones included, as one list. */
export const allMembers = ({ members }) => members.flatMap((member) => [member, ...allMembers(member)]);

/** A signature as HTML: the package's types are links, and its own name is emphasised. */
function signatureHtml(signature, name, linker) {
  const linked = escape(signature).replace(/(&\w+;)|\b[A-Z]\w+\b/g, (word, entity) => {
    const href = entity ? undefined : linker(word);
    return href === undefined ? word : `<a href="${href}">${word}</a>`;
  });
  return name ? linked.replace(name, `<b>${name}</b>`) : linked;
}

class Writer {
  #names;
  #page;

  constructor(names, page) {
    this.#names = names;
    this.#page = page;
  }

  #doc(text, owner) {
    return renderMarkdown(text, { code: this.#names.linker(this.#page, owner), page: (href) => href }).html;
  }

  /** @param {boolean} again a further signature; the first one has the anchor */
  #member(member, owner, same, again) {
    const doc = member.doc || (same && `As \`${same}.${member.name}\`.`);
    const signature = signatureHtml(member.signature, escape(member.name), this.#names.linker(this.#page));
    const inner = member.members.length ? this.#members(member.members, owner) : '';
    const anchor = again ? '' : ` <a class="anchor" href="#${member.path}" aria-label="Link to ${member.path}">#</a>`;
    const place = again ? '' : ` id="${member.path}"`;
    return `<li${place}><p class="signature"><code>${signature}</code>${anchor}</p>\n${doc ? this.#doc(doc, owner) : ''}${inner}</li>\n`;
  }

  #members(members, owner, same) {
    return `<ul class="members">\n${members.map((member, i) => this.#member(member, owner, same, member.path === members[i - 1]?.path)).join('')}</ul>\n`;
  }

  /** A declaration's kind, in one line. */
  #kind({ kind, signature, members }) {
    const [, parents] = / extends (.*)$/.exec(signature) ?? [];
    const also = parents ? ` extends <code>${signatureHtml(parents, '', this.#names.linker(this.#page))}</code>` : '';
    const isFrozen = kind === 'interface' && members.length && members.every(({ isReadonly }) => isReadonly);
    return `<p class="kind">${kind}${also}${isFrozen ? ', read-only' : ''}</p>\n`;
  }

  declaration(declaration) {
    const { name, kind, doc, signature, members } = declaration;
    const owner = kind === 'function' ? undefined : name;
    const parts = [heading(2, name, `<code>${name}</code>`), this.#kind(declaration)];
    if (!members.length)
      parts.push(
        `<pre class="line"><code>${signatureHtml(signature.replace(/^\w+ /, '').replace('= | ', '= '), name, this.#names.linker(this.#page, name))}</code></pre>\n`,
      );
    if (doc) parts.push(this.#doc(doc, owner));
    if (members.length) parts.push(this.#members(members, name, SAME_AS[name]));
    return `<section class="declaration">\n${parts.join('')}</section>\n`;
  }
}

/** Adds to `names` what a reference page describes. */
export function declareNames(names, { path, declarations }) {
  for (const declaration of declarations) {
    names.add(declaration.name, path, declaration.name);
    for (const member of allMembers(declaration)) names.add(member.path, path, member.path);
  }
}

/** @returns {string} the body of the page */
export function referenceHtml(names, { path, declarations }) {
  const writer = new Writer(names, path);
  return declarations.map((declaration) => writer.declaration(declaration)).join('');
}
