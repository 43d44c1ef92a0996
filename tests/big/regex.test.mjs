// SPDX-License-Identifier: MIT
// Hundreds of thousands of patterns and texts against JavaScript's own RegExp: the test of every run (tests/js/grammar/regex.test.mjs) with more of them.

process.env.QUERN_LONG = '1';
await import('../js/grammar/regex.test.mjs');
