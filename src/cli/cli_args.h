/* SPDX-License-Identifier: MIT
 *
 * The words and options of a command line: read, checked and explained like those of the npm package
 * (js/cli/cli-syntax.js), with the same names, limits and sentences. A test compares both.
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
    const char *words[2];       /* the model and the word after it */
    int n_words;
    bool given[OPTIONS];
    /* values of number options; for a name its index in the list; for --quantize the index for weights */
    double number[OPTIONS];
    double embeddings;          /* for --quantize */
    const char *text[OPTIONS];  /* values of text options */
    const char *stops[STOPS_MOST];
    int n_stops;
};

/* Returns whether there is a command to run. If not, help (*status 0) or an error message (*status 1) has been printed.
 * Texts are borrowed from argv. */
bool args_read(int argc, char **argv, struct args *a, int *status);

/* The value of an option, or `otherwise` if it was not given. */
double args_number(const struct args *a, enum option option, double otherwise);

#endif
