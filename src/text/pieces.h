/* SPDX-License-Identifier: MIT
 *
 * Qwen2's pre-tokenizer: cuts text into the pieces that byte pairs may not cross.
 */
#ifndef QUERN_PIECES_H
#define QUERN_PIECES_H

#include "base/base.h"

/* The end of the piece that starts at pos < text.size; always > pos. Calling it in a row until text.size is
 * linear in the text. */
size_t pieces_next(struct bytes text, size_t pos);

#endif
