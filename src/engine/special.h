/* SPDX-License-Identifier: MIT
 *
 * Tokens that stand around plain texts, and those that chat templates know by name.
 */
#ifndef QUERN_SPECIAL_H
#define QUERN_SPECIAL_H

#include "engine/state.h"

struct special {
    const char *name;      /* as templates know it */
    const char *text, *id; /* metadata keys: its text in a folder, its number in GGUF files */
};
extern const struct special specials[]; /* name NULL at the end */

/* Fills e->added, and checks what is said of the others. ERR_FORMAT "kv-type", ERR_INCONSISTENT "value",
 * ERR_UNSUPPORTED "tokenizer". */
int special_read(struct quern_engine *e, struct error *err);
/* What a template writes for it; data NULL: there is none. Borrowed until the model's first header is closed. */
struct bytes special_text(const struct quern_engine *e, const struct special *s);

#endif
