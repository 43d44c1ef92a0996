// SPDX-License-Identifier: MIT
// The JSON that a request brings, read as far as it may be long, and refused before that where its headers tell.

import { bodyOf } from '../facades/openai.js';
import { refusal } from './serve-refusal.js';

const tooLarge = (most) => refusal(413, `The body is larger than ${most} bytes.`);

/** @returns {Promise<Buffer>} */
function bytesOf(request, most) {
  return new Promise((resolve, reject) => {
    const chunks = [];
    let size = 0;
    request.on('data', (chunk) => {
      size += chunk.length;
      if (size <= most) chunks.push(chunk);
      else reject(tooLarge(most));
    });
    request.on('end', () => resolve(Buffer.concat(chunks)));
    request.on('error', reject);
    request.on('close', () => reject(refusal(400, 'The request has not come whole.')));
  });
}

/** @returns {Promise<any>} */
export async function readJson(request, most) {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity', 'content-length': length } = request.headers;
  if (!/^application\/json *(?:;|$)/i.test(type)) throw refusal(415, 'The Content-Type must be application/json.');
  if (encoding.toLowerCase() !== 'identity') throw refusal(415, 'A compressed body is not taken.');
  if (Number(length) > most) throw tooLarge(most);
  const bytes = await bytesOf(request, most);
  try {
    return bodyOf(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw refusal(400, 'The body is not JSON in UTF-8.');
  }
}
