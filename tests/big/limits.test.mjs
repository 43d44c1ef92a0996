// SPDX-License-Identifier: MIT
// A thousand random schemas over Qwen3-0.6B's number of layers, with its vocabulary and random weights, sixteen replies at once, as wild as it gets:
// the test of every run (tests/js/limits-random.test.mjs) with more of everything. (Node's test runner in a child of its own runs nothing.)

process.env.QUERN_LIMITS ??= '1000';
process.env.QUERN_LIMITS_LAYERS ??= '28';
process.env.QUERN_LIMITS_TOKENS ??= '240';
process.env.QUERN_LIMITS_AT_ONCE ??= '16';
await import('../js/limits-random.test.mjs');
