/* SPDX-License-Identifier: MIT
 *
 * Limits of a reply: --schema FILE, --grammar FILE, --regex PATTERN, --json-reply. The whole reply obeys them, from its
 * first token.
 */
#ifndef QUERN_CLI_GRAMMAR_H
#define QUERN_CLI_GRAMMAR_H

#include "cli/cli_args.h"
#include "quern.h"

struct cli_grammar;

/* *out: NULL if no option sets a limit. Returns 0, or 1 after an error message. */
int cli_grammar_open(struct quern_engine *e, const struct args *a, struct cli_grammar **out);
void cli_grammar_free(struct cli_grammar *g); /* accepts NULL */

/* Picks the next token by the last logits, among the allowed ones; among all if g is NULL. Returns its id, a status of
 * the engine, or a status of the grammar, whose error message is printed here and sets *said. */
int cli_grammar_pick(struct cli_grammar *g, struct quern_sequence *s, bool *said);

/* The exit status of a reply with this finish reason: 1, after an error message, if a limit of tokens cut it off before
 * the grammar ended. 0 if g is NULL. */
int cli_grammar_whole(const struct cli_grammar *g, const char *finish);

#endif
