// SPDX-License-Identifier: MIT
// The engine's worker where the browser refuses its store. Imported in this order, and not by a top-level await: while that
// is pending, a browser may take or leave what the page has sent.
import './no-opfs.js';
import '../../dist/worker.js';
