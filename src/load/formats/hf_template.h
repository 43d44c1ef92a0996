/* SPDX-License-Identifier: MIT
 *
 * The post-processor of a tokenizer.json file: which special tokens its template puts around a text. Alone or in a
 * sequence; one that only moves offsets adds nothing. What it does with a pair of texts is not read: no caller here has
 * two.
 */
#ifndef QUERN_HF_TEMPLATE_H
#define QUERN_HF_TEMPLATE_H

#include "base/json_reader.h"

enum { HF_ADDED_MOST = 8 }; /* on each side of a text; published tokenizers have one */

struct hf_ids {
    int32_t ids[HF_ADDED_MOST];
    int n;
};

struct hf_added {
    struct hf_ids sides[2]; /* before and behind a text, in order */
};

/* Reads the value of "post_processor". ERR_UNSUPPORTED "tokenizer" names what is not supported. */
void hf_read_post(struct json_reader *r, struct hf_added *out);

#endif
