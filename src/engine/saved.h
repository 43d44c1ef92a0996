/* SPDX-License-Identifier: MIT
 *
 * Saved conversations: the keys and values of whole pages as records of a file, and their way back into the cache. If
 * the model has a state, records of the state follow, which later pages replace.
 *
 * A file is a header and then records. Only the end of the file is ever written or cut off, so a crash leaves an
 * incomplete last record and nothing else. The header is a function of the model and the name, so a file whose header
 * has the same bytes belongs to this model, complete and up to date. A record carries its ids and the hash of the
 * record before it. It counts only if all records before it agree with the conversation, and its page is hashed before
 * it is used. A refused record costs time and never changes a result. Layout: MODEL.md.
 */
#ifndef QUERN_SAVED_H
#define QUERN_SAVED_H

#include "quern.h"

/* bytes of a header; bytes of a record before its page; most bytes of a name */
enum { SAVED_HEADER = 4096, SAVED_HEAD = 512, SAVED_NAME = 256 };

uint64_t saved_record(const struct quern_engine *e); /* bytes of a record; 0 if the model is only inspected */
/* Computes the model's fingerprint, once, by hashing all weights for about budget_ms per call (0: to the end). Returns
 * NEED_MORE while weights are left. */
int saved_print(struct quern_engine *e, int budget_ms);
/* Makes the header of the file of this name for s, which is set and held, and puts s at the first record. A file with
 * another header is of no use. out: [SAVED_HEADER]. Finishes saved_print(), and on a device may return its NEED_MORE.
 * OK, ERR_PARAM (the name), ERR_BUSY (not held). */
int saved_open(struct quern_sequence *s, struct bytes name, uint8_t *out);
/* The name in any header [SAVED_HEADER], borrowed. OK, ERR_FORMAT. */
int saved_name(const uint8_t *header, struct bytes *name);
/* Gives s the file's next record, n bytes: the whole record, whose page then counts as computed, or only its head,
 * which is enough if the page is known or, without states, not wanted. Overwrites a part of the record meanwhile. OK:
 * continue with the next record; ERR_FORMAT: damaged, the file ends here; ERR_EMPTY: the conversation differs, or ends
 * here; ERR_BUSY: no page is unused. */
int saved_give(struct quern_sequence *s, uint8_t *record, uint64_t n);
/* The same in two halves. In between, the engine's other threads work on the record while the caller may, for example,
 * read the next record into another buffer. Until the second call the record must not change, and no other function of
 * the engine may be called. The second call reports damage. */
int saved_give_begin(struct quern_sequence *s, uint8_t *record, uint64_t n);
int saved_give_end(struct quern_sequence *s);
/* Makes the file's next record, out [saved_record()], from the next page of s, or from its state. OK; ERR_EMPTY: there
 * is no further record; NEED_MORE: a device will write it to `out`; call again with the same `out` when it has arrived.
 */
int saved_take(struct quern_sequence *s, uint8_t *out);

#endif
