// SPDX-License-Identifier: MIT

/** Why a document is not read: the end of a sentence that begins with the document's name. */
export class Refusal extends Error {}
