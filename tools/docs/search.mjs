// SPDX-License-Identifier: MIT
// Makes the search index: an entry for each section of a page, each declaration, member and error code.
// docs/theme/find.js searches it.

import { plain } from './html.mjs';
import { allMembers } from './reference.mjs';

/** The number of letters of a section's text that are searched. */
const LONGEST = 1500;

const entry = (title, kind, href, text) => ({
  title,
  kind,
  href,
  text: text
    .replace(/[`\s]+/g, ' ')
    .trim()
    .slice(0, LONGEST),
});

const KINDS = { start: 'Guide', overview: 'Recipes', recipe: 'Recipe', reference: 'Error', entry: 'Module' };

/** Splits a page at its headings; coloured code becomes text again. */
function sectionsOf({ html, path, title, kind }) {
  const parts = html.split(/<section class="declaration">/)[0].split(/<h[1-3] id="([^"]*)">/).slice(1);
  return Array.from({ length: parts.length / 2 }, (_, i) => {
    const [id, text] = [parts[2 * i], parts[2 * i + 1]];
    const [name, ...rest] = text.split(/<a class="anchor"|<\/h[1-3]>/);
    const own = plain(name);
    return entry(
      i === 0 || kind === 'reference' ? own : `${title}: ${own}`,
      KINDS[kind],
      i === 0 ? path : `${path}#${id}`,
      plain(rest.join(' ').replace(/^[^>]*>#<\/a>/, '')),
    );
  });
}

const kindOf = (member, { name }) => {
  if (/Options$/.test(name)) return 'Option';
  return /^[\w[\].]+\??\(/.test(member.signature) ? 'Method' : 'Property';
};

const DECLARED = { interface: 'Type', type: 'Type', function: 'Function', class: 'Class', const: 'Object' };

/** @param {object} page rendered */
export function entriesOf(page) {
  const declared = (page.declarations ?? []).flatMap((declaration) => [
    entry(declaration.name, DECLARED[declaration.kind], `${page.path}#${declaration.name}`, declaration.doc),
    ...allMembers(declaration).map((member) =>
      entry(
        member.path,
        kindOf(member, declaration),
        `${page.path}#${member.path}`,
        `${member.doc} ${member.signature}`,
      ),
    ),
  ]);
  return [...sectionsOf(page), ...declared];
}
