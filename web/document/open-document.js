// SPDX-License-Identifier: MIT
// Text of documents and slides in OpenDocument (ISO/IEC 26300): ODT and ODP.
import { attribute, decode, parse } from './markup.js';
import { Prose } from './prose.js';

const SKIPPED = new Set(['annotation', 'tracked-changes', 'note-citation', 'notes']);

/** @param {import('./zip.js').Zip} zip @returns {Promise<string>} */
export async function readOpenDocument(zip) {
  const prose = new Prose();
  let marks = [''];     // of the texts around the present place: a note is inside of a text
  let lists = 0;
  let pages = 0;
  let notes = 0;
  const opening = {
    __proto__: null,
    p: () => { if (!notes) marks = [lists ? `${'  '.repeat(Math.min(8, lists - 1))}- ` : '']; },
    h: (source) => { marks = [`${'#'.repeat(Math.min(6, Number(attribute(source, 'outline-level')) || 1))} `]; },
    list: () => { lists++; },
    s: (source) => prose.add(' '.repeat(Math.min(100, Number(attribute(source, 'c')) || 1))),
    tab: () => prose.add('\t'),
    'line-break': () => prose.add('\n'),
    note: () => {
      notes++;
      prose.add(' (');
    },
    page: () => prose.place(`slide ${++pages}`),
    table: () => prose.openTable(),
    'table-cell': () => prose.openCell(),
  };
  const end = () => (notes ? prose.add(' ') : prose.end(lists ? 1 : 2, marks[0]));
  const closing = {
    __proto__: null,
    p: end,
    h: end,
    list: () => { lists--; },
    note: () => {
      notes--;
      prose.add(')');
    },
    table: () => prose.closeTable(),
    'table-row': () => prose.closeRow(),
    'table-cell': () => prose.closeCell(),
  };
  let texts = 0;        // paragraphs and headings around the present place
  parse(await zip.text('content.xml'), {
    open(name, source) {
      if (SKIPPED.has(name)) return false;
      texts += name === 'p' || name === 'h';
      return opening[name]?.(source);
    },
    close(name) {
      texts -= name === 'p' || name === 'h';
      closing[name]?.();
    },
    text(text) { if (texts > 0) prose.add(decode(text).replaceAll(/\s+/g, ' ')); },
  });
  return prose.toString();
}
