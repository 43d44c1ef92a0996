// SPDX-License-Identifier: MIT
// Types of the engine's glue, which exists only beside the bundled workers.
declare module '*/quern-simd.mjs' {
  const glue: (options: object) => Promise<object>;
  export default glue;
}
declare module '*/quern-simd64.mjs' {
  const glue: (options: object) => Promise<object>;
  export default glue;
}
declare module '*/quern-gpu.mjs' {
  const glue: (options: object) => Promise<object>;
  export default glue;
}
