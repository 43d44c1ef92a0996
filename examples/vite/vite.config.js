// SPDX-License-Identifier: MIT
// Nothing here is specific to quern. The headers let a page use threads; publicDir contains the demo model.
const headers = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' };

export default {
  base: './',
  publicDir: '../../web/models',
  server: { headers },
  preview: { headers },
};
