// SPDX-License-Identifier: MIT
// The lines of docs/recipes/bundlers.md for Vite before 8.
export default { worker: { format: 'es' }, optimizeDeps: { exclude: ['quern'] } };
