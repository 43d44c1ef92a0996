/* SPDX-License-Identifier: MIT
 *
 * Tokens that are added around plain texts, and tokens that chat templates know by name.
 */
#ifndef QUERN_SPECIAL_H
#define QUERN_SPECIAL_H

#include "engine/state.h"

struct special {
    const char *name;      /* name in templates */
    const char *text, *id; /* metadata keys: of its text in a folder, of its id in GGUF files */
};
extern const struct special specials[]; /* name NULL at the end */

/* Fills e->added, and checks the metadata of the named tokens. ERR_FORMAT "kv-type", ERR_INCONSISTENT "value",
 * ERR_UNSUPPORTED "tokenizer". */
int special_read(struct quern_engine *e, struct error *err);
/* The text that templates write for the token; data NULL: there is none. Borrowed until the model's first header is
 * closed. */
struct bytes special_text(const struct quern_engine *e, const struct special *s);

#endif
