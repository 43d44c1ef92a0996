// SPDX-License-Identifier: MIT
// A browser's store by itself, as keep-steps.js reads and writes it.
import { OpfsStore } from '../../js/store/store-opfs.js';
import { plain } from './keep-steps.js';

globalThis.onmessage = ({ data }) => plain(new OpfsStore(), data).then((took) => globalThis.postMessage(took),
  (error) => globalThis.postMessage({ error: String(error.stack ?? error) }));
