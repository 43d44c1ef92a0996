// SPDX-License-Identifier: MIT
// Text of documents and slides in Office Open XML (ECMA-376): DOCX and PPTX. Words and slides name their paragraphs,
// texts and tables alike. Headings, lists, tables and footnotes become Markdown; deleted text, field codes and links
// to other places are left out.
import { attribute, decode, parse } from './markup.js';
import { Prose } from './prose.js';

const numberOf = (source) => Number(attribute(source, 'val')) || 0;

const item = (level) => `${'  '.repeat(Math.max(0, Math.min(8, level)))}- `;

/**
 * What the paragraphs of a style begin with, by the id of the style, since each language has ids of its own: headings,
 * and lists whose style has the numbering.
 */
function marksOf(styles) {
  const marks = new Map();
  let id = '';
  let name = '';
  const opening = {
    __proto__: null,
    style: (source) => { id = attribute(source, 'styleid'); },
    name: (source) => {
      name = attribute(source, 'val');
      const [, level] = /^(?:heading ([1-6])|title)$/i.exec(name) ?? [null, 0];
      if (level !== 0) marks.set(id, `${'#'.repeat(level ?? 1)} `);
    },
    numid: () => { if (!marks.has(id)) marks.set(id, item((/^list .* (\d)$/i.exec(name)?.[1] ?? 1) - 1)); },
  };
  parse(styles, { open: (tag, source) => opening[tag]?.(source), close() {}, text() {} });
  return marks;
}

/** Parts of a document that are another form of what is there already, or are there no more. */
const SKIPPED = new Set('fallback movefrom del'.split(' '));

/** Writes a part of a package into the prose. */
class Part {
  #prose;
  #marks;
  #gap;
  #isText = false;
  #isProperty = false;    // inside the properties of a paragraph
  #mark = '';
  #opening = {
    __proto__: null,
    p: () => this.#begin(),
    ppr: () => { this.#isProperty = true; },
    pstyle: (source) => { this.#mark = this.#marks.get(attribute(source, 'val')) ?? this.#mark; },
    ph: (source) => { if (/^(?:ctrT|t)itle$/.test(attribute(source, 'type'))) this.#isTitle = true; },
    ilvl: (source) => { if (!this.#isHeading) this.#mark = item(numberOf(source)); },
    numid: (source) => { if (!this.#isHeading) this.#mark = numberOf(source) ? this.#mark || item(0) : ''; },
    t: () => { this.#isText = true; },
    tab: () => this.#add('\t'),
    br: () => this.#add('\n'),
    cr: () => this.#add('\n'),
    nobreakhyphen: () => this.#add('-'),
    footnotereference: (source) => this.#add(`[^${attribute(source, 'id')}]`),
    footnote: (source) => {
      if (attribute(source, 'type')) return false;    // the line between text and notes
      this.#gap = 1;
      return this.#prose.add(`[^${attribute(source, 'id')}]: `);
    },
    tbl: () => this.#prose.openTable(),
    tc: () => this.#prose.openCell(),
  };
  #closing = {
    __proto__: null,
    p: () => this.#end(),
    ppr: () => { this.#isProperty = false; },
    sp: () => { this.#isTitle = false; },
    t: () => { this.#isText = false; },
    tbl: () => this.#prose.closeTable(),
    tr: () => this.#prose.closeRow(),
    tc: () => this.#prose.closeCell(),
  };
  #isTitle = false;       // inside the title of a slide

  /** @param {Prose} prose @param {Map<string, string>} marks of styles @param {number} gap between paragraphs */
  constructor(prose, marks, gap) {
    this.#prose = prose;
    this.#marks = marks;
    this.#gap = gap;
  }

  open(name, source) { return !SKIPPED.has(name) && this.#opening[name]?.(source); }
  close(name) { this.#closing[name]?.(); }
  text(text) { if (this.#isText) this.#add(decode(text)); }

  #add(text) { if (!this.#isProperty) this.#prose.add(text); }

  /** A heading may be numbered too. */
  get #isHeading() { return this.#mark.startsWith('#'); }

  #begin() {
    this.#mark = this.#isTitle ? '## ' : '';
    this.#isProperty = false;
  }

  #end() {
    const isItem = this.#mark.endsWith('- ');
    this.#prose.end(isItem ? 1 : this.#mark ? 2 : this.#gap, this.#mark);
  }
}

/** @param {import('./zip.js').Zip} zip @returns {Promise<string>} */
export async function readWord(zip) {
  const prose = new Prose();
  const marks = marksOf(await zip.text('word/styles.xml'));
  parse(await zip.text('word/document.xml'), new Part(prose, marks, 2));
  prose.end(2);
  parse(await zip.text('word/footnotes.xml'), new Part(prose, marks, 2));
  return prose.toString();
}

/** Targets of a part's relations by their ids, as paths in the package. Those to other places are left out. */
export async function relationsOf(zip, folder, part) {
  const targets = new Map();
  parse(await zip.text(`${folder}/_rels/${part}.rels`), {
    open(name, source) {
      if (name !== 'relationship' || attribute(source, 'targetmode') === 'External') return;
      const target = attribute(source, 'target');
      targets.set(attribute(source, 'id'), target.startsWith('/') ? target.slice(1) : `${folder}/${target}`);
    },
    close() {},
    text() {},
  });
  return targets;
}

/** @param {import('./zip.js').Zip} zip @returns {Promise<string>} */
export async function readSlides(zip, onPart) {
  const targets = await relationsOf(zip, 'ppt', 'presentation.xml');
  const slides = [];
  parse(await zip.text('ppt/presentation.xml'), {
    open(name, source) { if (name === 'sldid') slides.push(targets.get(attribute(source, 'r:id'))); },
    close() {},
    text() {},
  });
  const prose = new Prose();
  for (const [i, slide] of slides.entries()) {
    onPart(i, slides.length, 'slide');
    prose.place(`slide ${i + 1}`);
    parse(await zip.text(slide), new Part(prose, new Map(), 1));
    prose.end(2);
  }
  return prose.toString();
}
