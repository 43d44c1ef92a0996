// SPDX-License-Identifier: MIT
// Serves the examples with the headers that threads need:  node examples/serve.mjs
// It sends no content security policy, since the small examples have their scripts inside the page.
import { fileURLToPath } from 'node:url';
import { serve } from '../tools/serve.mjs';

const { url } = await serve({ root: fileURLToPath(new URL('..', import.meta.url)), port: 8081, csp: false });
for (const name of ['minimal', 'stop']) console.log(`${url}examples/${name}.html`);
