// SPDX-License-Identifier: MIT
// What README says of Vite before 8.
export default { worker: { format: 'es' }, optimizeDeps: { exclude: ['quern'] } };
