/* SPDX-License-Identifier: MIT
 *
 * Functions that all readers of Hugging Face's JSON files call.
 */
#include "load/formats/hf.h"

void hf_unsupported(struct json_reader *r, const char *rule, const char *what, struct bytes name)
{
    char text[QUOTED];
    if (r->status) return;
    r->status = name.data ? fail(r->err, ERR_UNSUPPORTED, rule, r->pos, "%s: \"%.64s\".", what, quoted(name, text))
                          : fail(r->err, ERR_UNSUPPORTED, rule, r->pos, "%s.", what);
}

bool hf_null(struct json_reader *r)
{
    if (json_peek(r) != JSON_NULL) return false;
    json_skip(r);
    return true;
}
