// SPDX-License-Identifier: MIT
// Part of the GPU build's glue (--js-library): the functions of port.h are those of the device that the caller gives as
// `Module.gpu` (js/gpu/device.js).

addToLibrary(
  Object.fromEntries(
    ['layouts', 'fast', 'binding', 'buffer', 'release', 'write', 'copy', 'submit'].map((name) => [
      `gpu_${name}`,
      new Function('...given', `return Module['gpu'].${name}(...given)`),
    ]),
  ),
);
