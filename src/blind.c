/* SPDX-License-Identifier: MIT
 *
 * Marks a build without eyes, which is linked without the files that the Makefile names EYES: a page of text loads a tenth less. An engine that
 * has options.blind calls nothing of them; js/worker/start.js sees to that. The mark stands behind the number of the interface (wasm.c), as parts
 * of a custom section stand in the order of their files.
 */
__asm__(".section .custom_section.quern,\"\",@\n"
        ".ascii \" blind\"\n"
        ".text\n");
