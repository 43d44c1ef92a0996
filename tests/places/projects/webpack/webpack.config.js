// SPDX-License-Identifier: MIT
// Nothing here is about quern.
export default { entry: './main.js', devServer: { static: '.' } };
