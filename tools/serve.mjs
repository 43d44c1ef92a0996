#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// A static file server for the chat page and the tests. It serves one folder, and with `--docs` another one as /docs/;
// GET and HEAD only. Threads need a cross-origin isolated page (COOP + COEP), which plain static servers do not send,
// and model files need byte ranges. The headers are those that a real deployment should use, so the tests run under
// them too. `--no-isolation` leaves COOP and COEP out, like a host that cannot send headers.
import { createServer } from 'node:http';
import { createReadStream } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { extname, join, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const MIME = {
  '.html': 'text/html; charset=utf-8', '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8', '.mjs': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8', '.webmanifest': 'application/manifest+json; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8', '.md': 'text/plain; charset=utf-8',
  '.svg': 'image/svg+xml', '.png': 'image/png', '.ico': 'image/x-icon', '.wasm': 'application/wasm',
};

/**
 * The policy of scripts and workers; a worker takes its policy from its own response, not from the page. Only the
 * Trusted Types policies of the package and of the page are allowed.
 */
const CSP_SCRIPT = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "connect-src 'self' https: http://localhost:* http://127.0.0.1:*",
  "worker-src 'self'",
  "require-trusted-types-for 'script'", 'trusted-types quern quern-page quern-read quern-program',
].join('; ');

/** The page's policy. */
const CSP_PAGE = [
  CSP_SCRIPT,
  "style-src 'self'", "img-src 'self' blob: data:", 'media-src blob:', "manifest-src 'self'",
  "font-src 'self'", "frame-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
].join('; ');

/** What only the page itself may show in a frame. It has a policy of its own. */
const FRAMED = /\/late\/preview\.html$/;

/** Headers of every response. */
function commonHeaders(path, { isolate, csp }) {
  const type = MIME[extname(path).toLowerCase()] ?? 'application/octet-stream';
  const headers = {
    'Content-Type': type, 'Cache-Control': 'no-cache', 'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
  };
  if (csp) {
    const whole = type.startsWith('text/html') ? CSP_PAGE : CSP_SCRIPT;
    headers['Content-Security-Policy'] = FRAMED.test(path) ? "frame-ancestors 'self'" : whole;
  }
  if (isolate) {
    headers['Cross-Origin-Opener-Policy'] = 'same-origin';
    headers['Cross-Origin-Embedder-Policy'] = 'require-corp';
    headers['Cross-Origin-Resource-Policy'] = 'same-origin';
  }
  return headers;
}

/** Finds the file inside root for a request path; null if there is none, or if a link leads outside. */
async function locate(root, urlPath) {
  let path;
  try {
    path = decodeURIComponent(urlPath);
  } catch {
    return null;
  }
  if (/[\0\\]/.test(path) || path.split('/').includes('..')) return null;
  try {
    const real = await realpath(join(root, path));
    if (real !== root && !real.startsWith(root + sep)) return null;
    const info = await stat(real);
    if (info.isFile()) return { file: real, info };
    if (!info.isDirectory()) return null;
    return path.endsWith('/') ? await locate(root, `${urlPath}index.html`) : { redirect: true };
  } catch {
    return null;
  }
}

/** The folder that serves a path, and the rest of the path. */
function folderOf({ root, docs }, path) {
  return docs && /^\/docs(?:\/|$)/.test(path) ? [docs, path.slice('/docs'.length)] : [root, path];
}

/**
 * `Range` header -> {start, end} inclusive, null for "send everything", false for "cannot be satisfied" (RFC 9110, 14).
 */
function parseRange(header, size) {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? '');
  if (!match || (!match[1] && !match[2])) return null;
  const start = match[1] ? Number(match[1]) : Math.max(0, size - Number(match[2]));
  const end = match[1] && match[2] ? Math.min(Number(match[2]), size - 1) : size - 1;
  if (match[1] && match[2] && Number(match[2]) < start) return null;
  return start >= size || (!match[1] && Number(match[2]) === 0) ? false : { start, end };
}

/** Status, headers and byte range of the response for a file. */
function plan(request, info, headers) {
  const etag = `"${info.size.toString(16)}-${Math.trunc(info.mtimeMs).toString(16)}"`;
  Object.assign(headers, { ETag: etag, 'Last-Modified': info.mtime.toUTCString(), 'Accept-Ranges': 'bytes' });
  const known = request.headers['if-none-match'];
  if (known && known.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag)) return { status: 304 };
  const condition = request.headers['if-range'];
  const range = !condition || condition === etag ? parseRange(request.headers.range, info.size) : null;
  if (range === false) {
    headers['Content-Range'] = `bytes */${info.size}`;
    return { status: 416, length: 0 };
  }
  if (!range) return { status: 200, start: 0, end: info.size - 1, length: info.size };
  headers['Content-Range'] = `bytes ${range.start}-${range.end}/${info.size}`;
  return { status: 206, ...range, length: range.end - range.start + 1 };
}

function refuse(response, status, text, headers) {
  response.writeHead(status, { ...headers, 'Content-Type': 'text/plain; charset=utf-8' });
  response.end(`${text}\n`);
}

async function answer(request, response, options) {
  // Without the URL class, which would read "//name" as a host.
  const [, pathname, search] = /^([^?#]*)(.*)$/s.exec(request.url);
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    return refuse(response, 405, 'Method not allowed', { ...commonHeaders('', options), Allow: 'GET, HEAD' });
  }
  const found = await locate(...folderOf(options, pathname));
  if (!found || !pathname.startsWith('/')) return refuse(response, 404, 'Not found', commonHeaders('', options));
  if (found.redirect) {
    // A single leading slash: "//host" would be another origin.
    const Location = `${pathname.replace(/^\/+/, '/')}/${search}`;
    return refuse(response, 301, 'Moved', { ...commonHeaders('', options), Location });
  }
  const headers = commonHeaders(found.file, options);
  const { status, start, end, length } = plan(request, found.info, headers);
  if (length !== undefined) headers['Content-Length'] = length;
  response.writeHead(status, headers);
  if (request.method === 'HEAD' || !length) return response.end();
  // A client that disconnects in the middle is not a server error.
  return pipeline(createReadStream(found.file, { start, end }), response).catch(() => response.destroy());
}

function listen(server, port, host, strict) {
  return new Promise((done, failed) => {
    const retry = (error) => {
      if (error.code !== 'EADDRINUSE' || strict || port >= 65535) return failed(error);
      return listen(server, port + 1, host, strict).then(done, failed);
    };
    server.once('error', retry);
    server.listen(port, host, () => {
      server.off('error', retry);
      done(server.address().port);
    });
  });
}

/**
 * Serves a folder, and optionally one with the documentation. `port` 0 takes any free port; if a port is taken, the
 * next one is tried.
 * @returns {Promise<{url: string, port: number, close: () => Promise<void>}>}
 */
export async function serve({
  root,
  docs,
  port = 0,
  isolate = true,
  host = '127.0.0.1',
  csp = true,
  strictPort = false,
}) {
  const options = { root: await realpath(resolve(root)), docs: docs && (await realpath(resolve(docs))), isolate, csp };
  const server = createServer((request, response) => {
    answer(request, response, options).catch(() =>
      response.headersSent ? response.destroy() : refuse(response, 400, 'Bad request', {}),
    );
  });
  const actual = await listen(server, port, host, strictPort);
  const name = ['127.0.0.1', '0.0.0.0', '::'].includes(host) ? 'localhost' : host;
  const close = () => new Promise((done) => {
    server.close(done);
    server.closeAllConnections();
  });
  return { url: `http://${name}:${actual}/`, port: actual, close };
}

async function main() {
  const { values } = parseArgs({
    options: {
      root: { type: 'string', default: fileURLToPath(new URL('../build/site', import.meta.url)) },
      docs: { type: 'string' },
      port: { type: 'string', default: '8080' },
      host: { type: 'string', default: '127.0.0.1' },
      'no-isolation': { type: 'boolean', default: false },
    },
  });
  const port = Number(values.port);
  if (!Number.isInteger(port) || port < 0 || port > 65535) throw new Error(`--port: not a port number: ${values.port}`);
  const { url } = await serve({
    root: values.root,
    docs: values.docs,
    port,
    host: values.host,
    isolate: !values['no-isolation'],
  });
  console.log(`quern: open ${url}  (Ctrl+C ends)`);
  if (values.docs) console.log(`quern: documentation at ${url}docs/`);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  main().catch((error) => {
    console.error(`serve: ${error.message}`);
    process.exitCode = 1;
  });
}
