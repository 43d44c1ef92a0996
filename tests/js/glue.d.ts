// SPDX-License-Identifier: MIT
// The engine's glue, which stands beside the bundled workers only.
declare module '*/quern-simd.mjs' {
  const glue: (options: object) => Promise<object>;
  export default glue;
}
declare module '*/quern-simd64.mjs' {
  const glue: (options: object) => Promise<object>;
  export default glue;
}
