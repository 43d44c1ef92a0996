// SPDX-License-Identifier: MIT
// Nothing here is about quern: Rollup finds no package without this plugin.
import resolve from '@rollup/plugin-node-resolve';

export default { input: 'main.js', output: { dir: 'dist', format: 'es' }, plugins: [resolve({ browser: true })] };
