#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Chromium 156: write() of a FileSystemSyncAccessHandle returns 4294967288 instead of throwing when the quota is full.
#
# The File System Standard requires a QuotaExceededError. Chromium returns its internal code FILE_ERROR_NO_SPACE, -8, as
# an unsigned number: more bytes than were given. A program that adds it to the number of written bytes believes that
# the write succeeded. Creating a file then throws correctly.
#
# Needs Chromium on PATH (`chromium`, or the program in CHROMIUM); playwright-core 1.65.1 drives it and limits its
# quota.
# Expected output: the result of each call.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm install --silent --no-save --prefix "$dir" playwright-core@1.65.1
cat > "$dir/main.mjs" <<'JS'
import { createServer } from 'node:http';
import { chromium } from 'playwright-core';
const worker = `
  const seen = [];
  const note = async (name, call) => seen.push(name + ': ' + await Promise.resolve().then(call).catch((error) => error.name));
  onmessage = async () => {
    const folder = await navigator.storage.getDirectory();
    const access = await (await folder.getFileHandle('a', { create: true })).createSyncAccessHandle();
    await note('write 1 MiB', () => access.write(new Uint8Array(2 ** 20), { at: 0 }));
    await note('write 8 MiB', () => access.write(new Uint8Array(2 ** 23), { at: 0 }));
    await note('create', () => folder.getFileHandle('b', { create: true }));
    postMessage(seen.join('\\n'));
  };`;
const types = { '/': ['text/html', '<!doctype html>'], '/worker.js': ['text/javascript', worker] };
const server = createServer(({ url }, response) => {
  const [type, text] = types[url] ?? ['text/plain', ''];
  response.setHeader('Content-Type', type).end(text);
});
await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
const origin = `http://127.0.0.1:${server.address().port}`;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: process.getuid() === 0 ? ['--no-sandbox'] : [] });
const page = await browser.newPage();
await page.goto(origin);
await (await page.context().newCDPSession(page)).send('Storage.overrideQuotaForOrigin', { origin, quotaSize: 2 ** 22 });
console.log(await page.evaluate(() => new Promise((done) => {
  const one = new Worker('worker.js');
  one.onmessage = ({ data }) => done(data);
  one.postMessage(null);
})));
await browser.close();
server.close();
JS
CHROMIUM=${CHROMIUM:-$(command -v chromium)} node "$dir/main.mjs" > "$dir/seen"
cat "$dir/seen"
diff - "$dir/seen" <<'SEEN'
write 1 MiB: 1048576
write 8 MiB: 4294967288
create: QuotaExceededError
SEEN
