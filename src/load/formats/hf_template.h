/* SPDX-License-Identifier: MIT
 *
 * The post-processor of a tokenizer.json file: the special tokens that its template puts around a text. It may be alone
 * or in a sequence. One that only moves offsets adds nothing. Its rule for a pair of texts is not read, because no
 * caller here has pairs.
 */
#ifndef QUERN_HF_TEMPLATE_H
#define QUERN_HF_TEMPLATE_H

#include "base/json_reader.h"

enum { HF_ADDED_MOST = 8 }; /* on each side of a text; published tokenizers add one */

struct hf_ids {
    int32_t ids[HF_ADDED_MOST];
    int n;
};

struct hf_added {
    struct hf_ids sides[2]; /* before and after a text, in order */
};

/* Reads the value of "post_processor". ERR_UNSUPPORTED "tokenizer" names a feature that is not supported. */
void hf_read_post(struct json_reader *r, struct hf_added *out);

#endif
