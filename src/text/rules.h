/* SPDX-License-Identifier: MIT
 *
 * How a tokenizer cuts texts into pieces. The splits of all models that run are one algorithm (pieces.c) with these
 * settings; load/architecture.c names them.
 */
#ifndef QUERN_RULES_H
#define QUERN_RULES_H

#include <stdbool.h>

/* What differs between the splits; all zero: that of Qwen2. */
struct piece_rules {
    bool marks;         /* combining marks belong to words like letters (Qwen3.5's split), not to other characters */
    /* GPT-2's split after single digits (SmolLM's): contractions in small letters, a space alone begins another piece,
     * line ends are spaces */
    bool bare;
    int digits;         /* most digits of a piece (3 in Llama 3's split); 0: 1 */
};

#endif
