// SPDX-License-Identifier: MIT
// Markdown -> tokens, by `marked`, for texts that nobody has vouched for: nesting, marks and lengths are bounded, and
// HTML is text. Added to GitHub's Markdown is what people know from chats: formulas, footnotes, <br>, <sub> and <sup>,
// line breaks that stay, and bold text beside Chinese and Japanese punctuation. Reference definitions are off: with
// them a late line would change paragraphs above it, and a growing text could not be shown block by block (stream.js).
import { Lexer, Tokenizer } from 'marked';

/** Nesting beyond this is shown as text: the lexer and the builder recurse once per level. */
const MAX_DEPTH = 12;

/**
 * Longer inline texts, and those with more marks, are shown unformatted, because emphasis takes quadratic time in the
 * marks, or worse.
 */
const MAX_INLINE = 4096;
const MAX_MARKS = 500;

/** Longest heading of the kind that is underlined by the next line, in characters. */
const MAX_HEADING = 256;

/**
 * Longest block, in characters. A longer block is cut (stream.js), and its content is not parsed before, since its
 * lines may take quadratic time.
 */
export const MAX_BLOCK = 4096;

/**
 * A formula in a line: \(..\), \[..\], $$..$$, or $..$ by pandoc's rule: no space behind the first $ or before the
 * second one, and no digit behind that, so that "$5 and $6" is none.
 */
const FORMULA = /\\\(([^]+?)\\\)|\\\[([^]+?)\\\]|\$\$((?:\\[^]|[^\\$])+)\$\$|\$(?![\s$])((?:\\[^]|[^\\$`])+)(?<!\s)\$(?!\d)/;
const FORMULA_HERE = new RegExp(`^(?:${FORMULA.source})`);

/** Formulas, and what contains none: code, and escaped characters. */
const FORMULAS = new RegExp(`(\`+)[^]*?\\1|\\\\[^([]|${FORMULA.source}`, 'g');

/** A formula that is a block, with the punctuation behind it. */
const DISPLAY = /^ {0,3}(?:\$\$((?:\\[^]|[^\\$])+)\$\$|\\\[([^]+?)\\\])([.,;:]?)[ \t]*(?:\n|$)/;

const FOOTNOTE = /^\[\^(\d{1,4})\]:[ \t]*([^\n]*(?:\n[ \t]+\S[^\n]*)*)(?:\n|$)/;

/** Where a paragraph ends although no empty line follows. */
const BLOCK_START = /\n(?= {0,3}(?:\$\$|\\\[)|\[\^\d+\]:)|(?<![`\w])<tool_call>(?=\s*(?:[{<]|$))/;

/** A call of a tool that the reply's end has cut off. */
const CUT_CALL = /^<tool_call>(?=\s*(?:[{<]|$))(?![^]*<\/tool_call>)[^]*/;

/** The only HTML that is no text. */
const HTML = /^<(?:(br) ?\/?|(su[bp])>([^]{1,300}?)<\/\2)>/i;

/** Letters and punctuation of Chinese, Japanese and Korean: nearly all that Unicode has, as two ranges. */
const CJK = '[\\u2e80-\\ud7af\\uf900-\\uffef]';
const IS_CJK = new RegExp(`^\\*+${CJK}|^${CJK}`, 'u');

/** Punctuation before an asterisk that counts as a letter there, since these scripts put no spaces beside it. */
const BESIDE_CJK = new RegExp(`[\\p{P}\\p{S}](?<!\\*)(?=\\*+${CJK})|(?=\\p{P})${CJK}(?=\\*)`, 'gu');

function inlineToken(src) {
  const [raw, parens, brackets, dollars, dollar] = FORMULA_HERE.exec(src) ?? [];
  const shown = brackets ?? dollars;
  if (raw) return { type: 'formula', raw, tex: parens ?? shown ?? dollar, display: shown !== undefined };
  const [html, br, tag, inner] = HTML.exec(src) ?? [];
  if (br) return { type: 'br', raw: html };
  if (tag) return { type: tag.toLowerCase(), raw: html, tokens: this.lexer.inlineTokens(inner) };
  const [note, text] = /^\[\^(\d{1,4})\]/.exec(src) ?? [];
  return note && { type: 'note', raw: note, text };
}

function blockToken(src) {
  const [raw, dollars, brackets, end] = DISPLAY.exec(src) ?? [];
  const tex = dollars ?? brackets;
  if (raw && !/\n[ \t]*\n/.test(tex)) return { type: 'display', raw, tex: tex + end, display: true };
  const [note, label, text] = FOOTNOTE.exec(src) ?? [];
  if (note) return { type: 'footnote', raw: note, label, tokens: this.lexer.inline(text) };
  const [cut] = CUT_CALL.exec(src) ?? [];
  return cut && { type: 'cut', raw: cut };
}

class PlainTokenizer extends Tokenizer {
  #quotes = 0;

  // For lines that continue a quote, marked calls this once per level past blockTokens and its bound.
  blockquote(src) {
    if (this.#quotes > 2 * MAX_DEPTH) throw new RangeError('quotes nested too deeply');
    this.#quotes++;
    try {
      return super.blockquote(src);
    } finally {
      this.#quotes--;
    }
  }

  // Both are tried at every line, and would read all other lines each time.
  table(src) {
    const head = src.split('\n', 2).join('\n');
    return super.table(head) && super.table(src);
  }

  lheading(src) {
    return this.lexer.withLevel(
      super.lheading(src.length > MAX_HEADING ? src.slice(0, src.lastIndexOf('\n', MAX_HEADING) + 1) : src),
    );
  }

  heading(src) { return this.lexer.withLevel(super.heading(src)); }

  emStrong(src, masked, before) {
    return super.emStrong(src, masked, src[0] === '*' && (IS_CJK.test(before) || IS_CJK.test(src)) ? '' : before);
  }

  html() { return undefined; }
  tag() { return undefined; }
  def() { return undefined; }
  reflink() { return undefined; }
}

const EXTENSIONS = {
  block: [blockToken],
  inline: [inlineToken],
  startBlock: [(src) => src.search(BLOCK_START)],
  startInline: [(src) => src.indexOf('$')],
};

class BoundedLexer extends Lexer {
  #depth = 0;
  #source = '';

  /** @param {number[]} headings depths of the headings that the next one may be below, outermost first */
  constructor(headings) {
    super({
      gfm: true,
      breaks: true,
      tokenizer: new PlainTokenizer(),
      extensions: EXTENSIONS,
      hooks: { emStrongMask: (mask) => this.#mask(mask) },
    });
    this.headings = headings;
  }

  blockTokens(src, tokens = [], clipped = false) {
    const depth = this.#depth > 0 && src.length > MAX_BLOCK ? 0 : MAX_DEPTH;
    return this.#bounded(src, tokens, depth, () => super.blockTokens(src, tokens, clipped));
  }

  inlineTokens(src, tokens = []) {
    const isSlow = src.length > MAX_INLINE || src.split(/[*_~$]/, MAX_MARKS + 1).length > MAX_MARKS;
    const depth = isSlow ? 0 : MAX_DEPTH;
    this.#source = src;
    return this.#bounded(src, tokens, depth, () => super.inlineTokens(src, tokens));
  }

  /**
   * Gives a heading its level: 2 or one more than the heading above that it belongs to, whatever the number of its #.
   * One inside a list or a quote opens no section.
   */
  withLevel(token) {
    if (!token) return token;
    const above = this.headings.filter((depth) => depth < token.depth);
    if (this.#depth === 1) this.headings = [...above, token.depth];
    return Object.assign(token, { level: Math.min(above.length + 2, 6), headings: this.headings });
  }

  /** What marked searches for the end of emphasis: a text in which what contains no mark is replaced by letters. */
  #mask(mask) {
    let masked = mask;
    for (const { 0: { length }, 1: code, index } of this.#source.matchAll(FORMULAS)) {
      if (!code && length > 2) masked = masked.slice(0, index) + 'a'.repeat(length) + masked.slice(index + length);
    }
    return masked.replace(BESIDE_CJK, (mark) => 'a'.repeat(mark.length));
  }

  #bounded(src, tokens, limit, split) {
    if (this.#depth >= limit) {
      tokens.push({ type: 'text', raw: src, text: src, literal: true });
      return tokens;
    }
    this.#depth++;
    try {
      return split();
    } finally {
      this.#depth--;
    }
  }
}

/**
 * Block tokens of a text with "\n" line ends; their `raw` parts joined are the text.
 * @param {number[]} [headings] that the text stands under, as the last heading's token has them
 */
export function blocks(text, headings = []) {
  try {
    const tokens = new BoundedLexer(headings).lex(text);
    if (tokens.reduce((sum, token) => sum + token.raw.length, 0) === text.length) return tokens;
  } catch {
    // The lexer gives up on this text: it is shown as written.
  }
  return [{ type: 'text', raw: text, text, literal: true }];
}
