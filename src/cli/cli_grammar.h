/* SPDX-License-Identifier: MIT
 *
 * What a reply must look like: --schema FILE, --grammar FILE, --regex PATTERN, --json-reply. The whole reply obeys,
 * from its first token on.
 */
#ifndef QUERN_CLI_GRAMMAR_H
#define QUERN_CLI_GRAMMAR_H

#include "cli/cli_args.h"
#include "quern.h"

struct cli_grammar;

/* *out: NULL where no option asks for one. 0, or 1 after the complaint. */
int cli_grammar_open(struct quern_engine *e, const struct args *a, struct cli_grammar **out);
void cli_grammar_free(struct cli_grammar *g); /* accepts NULL */

/* The next token by the last logits and what may follow; any where g is NULL. An id, or a status of the engine or of
 * what limits the reply: that one is said here, and *said is set. */
int cli_grammar_pick(struct cli_grammar *g, struct quern_sequence *s, bool *said);

/* The exit status of a reply that ended so: 1 after the complaint where a limit of tokens cut it off, so that it is
 * less than was asked for. 0 if g is NULL. */
int cli_grammar_whole(const struct cli_grammar *g, const char *finish);

#endif
