/* SPDX-License-Identifier: MIT
 *
 * The words and options of a command line: read, checked and explained as the npm package's (js/cli/cli-syntax.js) has
 * them, with the same names, limits and sentences. A test runs both over the same ones.
 */
#ifndef QUERN_CLI_ARGS_H
#define QUERN_CLI_ARGS_H

#include "base/base.h"
#include "option_data.h"

enum command {
    COMMAND_RUN,
    COMMAND_INFO,
    COMMAND_QUANTIZE,
    COMMAND_BENCH,
    COMMAND_TOKENIZE,
    COMMAND_LOGITS,
    COMMAND_VISION,
    COMMANDS
};

enum option {
#define ID(id, ...) OPT_##id,
    CLI_OPTIONS(ID)
#undef ID
    OPTIONS
};

struct args {
    enum command command;
    const char *words[2];       /* the model and what comes behind it */
    int n_words;
    bool given[OPTIONS];
    /* of options that take one; whole ones are exact. Of names: its place in the list; of --quantize: of the weights */
    double number[OPTIONS];
    double embeddings;          /* of --quantize */
    const char *text[OPTIONS];  /* of options that take any text */
    const char *stops[STOPS_MOST];
    int n_stops;
};

/* Whether there is something to do. If not, what was asked for has been printed (*status 0), or the complaint (1).
 * Texts are borrowed from argv. */
bool args_read(int argc, char **argv, struct args *a, int *status);

/* The number that was given, or another one. */
double args_number(const struct args *a, enum option option, double otherwise);

#endif
