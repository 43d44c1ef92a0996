// SPDX-License-Identifier: MIT
// Reads a document in a worker of its own: whatever a document costs, the page goes on, and the end of the worker ends
// the work. The first bytes and the content of a file tell its kind, never its name alone.
import { readBook, readPage } from './hypertext.js';
import { readSlides, readWord } from './office.js';
import { readOpenDocument } from './open-document.js';
import { readPdf } from './pdf.js';
import { Refusal } from './refusal.js';
import { Zip } from './zip.js';

/** Archives by an entry that only they have, and what reads them. */
const PACKED = [
  ['word/document.xml', readWord],
  ['ppt/presentation.xml', readSlides],
  ['META-INF/container.xml', readBook],
];

async function readArchive(file, onPart) {
  const zip = await Zip.open(file);
  const [, read] = PACKED.find(([name]) => zip.names.includes(name)) ?? [];
  if (read) return read(zip, onPart);
  const type = await zip.text('mimetype');
  if (/opendocument\.(?:text|presentation)/.test(type)) return readOpenDocument(zip);
  if (zip.names.includes('xl/workbook.xml') || /spreadsheet/.test(type))
    throw new Refusal('is a spreadsheet. Save the sheet as CSV, and add that.');
  throw new Refusal('is an archive without a document that this page reads (DOCX, PPTX, ODT, ODP, EPUB).');
}

const READERS = { pdf: readPdf, archive: readArchive, page: readPage };

/** Signs that no text has, which may confuse a model or a terminal. */
const CONTROLS = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]/g;

addEventListener('message', async ({ data: { kind, file } }) => {
  const onPart = (done, all, what) => postMessage({ done, all, what });
  try {
    const text = await READERS[kind](file, onPart);
    postMessage({ text: text.replaceAll(CONTROLS, '') });
  } catch (error) {
    postMessage({ refusal: error instanceof Refusal ? error.message : `cannot be read (${error.message}).` });
  }
});
