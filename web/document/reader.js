// SPDX-License-Identifier: MIT
// Reads a document in a worker of its own, or finds passages in texts. Whatever they cost, the page goes on, and the
// end of the worker ends the work. The content of an archive tells the kind of its document, not its name.
import { readBook, readPage } from './hypertext.js';
import { readSlides, readWord } from './office.js';
import { readOpenDocument } from './open-document.js';
import { cuts, nearest, search } from './passages.js';
import { readPdf } from './pdf.js';
import { Refusal, serve } from './refusal.js';
import { readSheets } from './sheets.js';
import { Zip } from './zip.js';

/** Archives by an entry that only they have, and what reads them. */
const PACKED = [
  ['word/document.xml', readWord],
  ['ppt/presentation.xml', readSlides],
  ['xl/workbook.xml', readSheets],
  ['META-INF/container.xml', readBook],
];

async function readArchive(file, onPart) {
  const zip = await Zip.open(file);
  const [, read] = PACKED.find(([name]) => zip.names.includes(name)) ?? [];
  if (read) return read(zip, onPart);
  const type = await zip.text('mimetype');
  if (/opendocument\.(?:text|presentation)/.test(type)) return readOpenDocument(zip);
  if (/spreadsheet/.test(type)) throw new Refusal('{1} is a spreadsheet. Save a copy as XLSX or CSV.');
  throw new Refusal('{1} is an archive without a document that this page reads (DOCX, PPTX, XLSX, ODT, ODP, EPUB).');
}

const READERS = { pdf: readPdf, archive: readArchive, page: readPage };

/** Signs that no text has, which may confuse a model or a terminal. */
const CONTROLS = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]/g;

serve(async ({ kind, file, ...job }) => {
  if (kind === 'cuts') return { cuts: cuts(job) };
  if (kind === 'passages') return { passages: nearest(job) };
  if (kind === 'search') return { found: search(job) };
  const text = await READERS[kind](file, (done, all, what) => postMessage({ done, all, what }));
  return { text: text.replaceAll(CONTROLS, '') };
});
