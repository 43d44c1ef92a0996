// SPDX-License-Identifier: MIT
// The series of ops.c, by their numbers there, and how long they get.

export const SERIES = [
  'rmsnorm', 'rope', 'swiglu', 'kv_append', 'attention, prefill', 'attention, decode',
  'matmul F32', 'matmul F16', 'matmul BF16', 'matmul Q8_0', 'matmul Q4_0', 'matmul Q4_K', 'matmul Q6_K',
  'block Q8_0, prefill', 'block Q8_0, decode', 'block Q4_K, prefill', 'block Q4_K, decode',
  'feed-forward Q8_0, batch', 'experts Q8_0, batch', 'layer Q8_0, batch', 'layer with experts Q8_0, batch',
  'feed-forward Q4_K, batch', 'experts Q4_K, batch', 'layer Q4_K, batch', 'layer with experts Q4_K, batch',
];

/** Rows of a batch at most, or positions. */
export const mostOf = (name) => (name.endsWith(', batch') ? 16 : 4096);
