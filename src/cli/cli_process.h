/* SPDX-License-Identifier: MIT
 *
 * What a command line asks its system about processes. The native one has it from C (cli_process.c), that in Node from
 * Node (tool.c), since Emscripten's library knows neither other processes nor this one's number.
 */
#ifndef QUERN_CLI_PROCESS_H
#define QUERN_CLI_PROCESS_H

#include <stdbool.h>

int process_id(void);
int process_user(void);
bool process_exists(int id);
/* Makes a symbolic link. 0 or an errno. */
int process_link(const char *target, const char *path);

/* Natively only: from now on what asks the program to end is noted instead. The signal's number; 0: none yet. */
void process_note_signals(void);
int process_signal(void);

#endif
