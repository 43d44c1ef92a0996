// SPDX-License-Identifier: MIT
// The engine's worker in a browser that refuses its store. The imports are in this order, without a top-level await:
// while such an await is pending, a browser may deliver or drop the page's messages.
import './no-opfs.js';
import '../../dist/worker.js';
