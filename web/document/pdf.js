// SPDX-License-Identifier: MIT
// Text of PDF files by pdf.js, which is fetched with the first one. It gets the bytes and nothing else: no script of a
// document, no form and no link is followed, images and fonts are not decoded for drawing, and the tables of letters
// (CMaps) that Chinese, Japanese and Korean documents name come from one file of this site.
import { LARGEST } from './prose.js';
import { Refusal } from './refusal.js';

const MOST_BYTES = 100e6;
const MOST_PAGES = 5000;

const missing = () =>
  new Refusal('{1} cannot be read yet: the part of this page that reads PDF files has to be fetched once, by the network.');

/** The tables of letters, packed by tools/site.mjs: places by name as JSON in the first line, then their bytes. */
class Tables {
  static isMissing = false;     // pdf.js goes on without a table, and leaves its letters out
  #bytes = null;

  async fetch({ kind, filename }) {
    if (kind !== 'cMapUrl') throw new Error('Only tables of letters are there.');
    this.#bytes ??= fetch('./pdf.cmaps').then((response) => response.arrayBuffer());
    this.#bytes.catch(() => { Tables.isMissing = true; });
    const bytes = new Uint8Array(await this.#bytes);
    const line = bytes.indexOf(10);
    const [from, length] = JSON.parse(new TextDecoder().decode(bytes.subarray(0, line)))[filename];
    return bytes.slice(line + 1 + from, line + 1 + from + length);
  }
}

/** Starts pdf.js, of which one half works in a worker below this one. */
async function start() {
  const { PDFWorker, getDocument } = await import('pdfjs-dist/legacy/build/pdf.min.mjs')
    .catch(() => { throw missing(); });
  const rules = { createScriptURL: () => './pdf.worker.min.mjs' };
  const policy = globalThis.trustedTypes?.createPolicy('quern-read', rules) ?? rules;
  const port = new Worker(policy.createScriptURL(''), { type: 'module' });
  const failed = new Promise((_, reject) => {
    // A script that was not fetched fails without a message.
    port.addEventListener('error', ({ message }) => reject(message ? new Error(message) : missing()));
  });
  return { getDocument, worker: PDFWorker.create({ port, verbosity: 0 }), failed };
}

/** Sentences for the errors of pdf.js, by their names. */
function refusalOf(error) {
  if (error instanceof Refusal) return error;
  if (error?.name === 'PasswordException') return new Refusal('{1} is protected by a password. Save a copy without one.');
  return new Refusal('{1} is damaged, or is no PDF file: it has no pages that can be read.');
}

/**
 * A page's lines as pdf.js puts them in order. A space above a line that is clearly wider than its letters are high
 * begins a paragraph.
 */
async function textOf(page) {
  const reader = page.streamTextContent().getReader();
  const lines = [];
  let line = '';
  let last = null;      // where the line above was, in points from the bottom
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    for (const { str, hasEOL, height, transform } of value.items) {
      if (str === undefined) continue;
      if (!line && str.trim()) {
        if (last !== null && last - transform[5] > 1.9 * height) lines.push('');
        last = transform[5];
      }
      line += str;
      if (!hasEOL) continue;
      lines.push(line.trimEnd());
      line = '';
    }
  }
  return [...lines, line].join('\n').replaceAll(/\n{3,}/g, '\n\n').trim();
}

/** @param {object} document of pdf.js */
async function readPages(document, onPart) {
  const { numPages } = document;
  if (numPages > MOST_PAGES) throw new Refusal('{1} has {2} pages; at most {3} are read.', numPages, MOST_PAGES);
  const pages = [];
  let size = 0;
  let broken = 0;
  for (let i = 1; i <= numPages; i++) {
    onPart(i - 1, numPages, 'page');
    try {
      const page = await document.getPage(i);
      const text = await textOf(page);
      page.cleanup();
      if (text) pages.push(numPages > 1 ? `[page ${i}]\n\n${text}` : text);
      size += text.length;
    } catch {
      broken++;
      pages.push(`[page ${i}]\n\n[This page is damaged.]`);
    }
    if (size > LARGEST) throw new Refusal('{1} has more than {2} million characters of text.', LARGEST / 1e6);
  }
  if (Tables.isMissing) throw missing();
  if (broken === numPages) throw new Error('no page can be read');
  if (!size) throw new Refusal('{1} has no text, only pictures of its pages, as scans have. Recognise its text first (OCR).');
  return pages.join('\n\n');
}

/** @param {File} file @returns {Promise<string>} */
export async function readPdf(file, onPart) {
  if (file.size > MOST_BYTES) throw new Refusal('{1} has more than {2} MB, which is the most for a PDF file.', MOST_BYTES / 1e6);
  const { getDocument, worker, failed } = await start();
  const { promise } = getDocument({
    data: new Uint8Array(await file.arrayBuffer()),
    worker,
    BinaryDataFactory: Tables,
    useWorkerFetch: false,
    cMapUrl: './',
    useWasm: false,
    enableXfa: false,
    disableFontFace: true,
    useSystemFonts: false,
    isOffscreenCanvasSupported: false,
    isImageDecoderSupported: false,
    verbosity: 0,
  });
  try {
    return await Promise.race([promise.then((document) => readPages(document, onPart)), failed]);
  } catch (error) {
    throw refusalOf(error);
  }
}
