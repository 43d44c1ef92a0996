/* SPDX-License-Identifier: MIT
 *
 * Saved conversations: keys and values of whole pages as records of a file, and their way back into the cache; then the
 * state, of a model that has one, whose records make way for further pages.
 *
 * A file is a header and records, one after the other; only its end is ever written or cut off, so a crash leaves a
 * record that is not whole, and nothing else. The header is a function of the model and the name, so a file is this
 * model's, whole and up to date, when its header is the same bytes. A record carries its ids and the hash of the one
 * before: none counts unless all before it agree with the conversation, and its page is hashed before it is used. What
 * is refused costs time, never a result. Layout: MODEL.md.
 */
#ifndef QUERN_SAVED_H
#define QUERN_SAVED_H

#include "quern.h"

/* bytes of a header; of what a record has before its page; of a name at most */
enum { SAVED_HEADER = 4096, SAVED_HEAD = 512, SAVED_NAME = 256 };

uint64_t saved_record(const struct quern_engine *e); /* bytes of a record; 0 where pages cannot be had */
/* Hashes all weights, which is done once, for about budget_ms (0: as long as it takes). NEED_MORE: there are more. */
int saved_print(struct quern_engine *e, int budget_ms);
/* Puts s, which is set and held, at the beginning of the file of this name, whose header goes to out [SAVED_HEADER]: a
 * file that begins otherwise is of no use. Ends what saved_print() has not, and may return its NEED_MORE on a device.
 * OK, ERR_PARAM (the name), ERR_BUSY (not held). */
int saved_open(struct quern_sequence *s, struct bytes name, uint8_t *out);
/* The name in somebody's header [SAVED_HEADER], borrowed. OK, ERR_FORMAT. */
int saved_name(const uint8_t *header, struct bytes *name);
/* The file's next record, n bytes of it: at least its head, which is enough where its page is known or, without states,
 * not wanted; the whole of it gives the page to s, as if computed. Overwrites a part of it meanwhile. OK: the next one;
 * ERR_FORMAT: damaged, the file ends here; ERR_EMPTY: the conversation goes on otherwise, or ends; ERR_BUSY: no page is
 * unused. */
int saved_give(struct quern_sequence *s, uint8_t *record, uint64_t n);
/* The same in two halves, between which the engine's other threads work at it while the caller, say, reads the next one
 * into another room. Meanwhile nothing else is asked of the engine, and the record stays. Whether it is damaged the
 * second one says. */
int saved_give_begin(struct quern_sequence *s, uint8_t *record, uint64_t n);
int saved_give_end(struct quern_sequence *s);
/* Makes the file's next record, out [saved_record()], of s's next page, or of its state. OK; ERR_EMPTY: there is none;
 * NEED_MORE: it is on its way from a device, to `out`, for which the call is made again when it has arrived. */
int saved_take(struct quern_sequence *s, uint8_t *out);

#endif
