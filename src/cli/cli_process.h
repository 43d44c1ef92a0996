/* SPDX-License-Identifier: MIT
 *
 * What a command line asks the system about processes. The native one asks through C (cli_process.c), the one in Node
 * through Node (tool.c), since Emscripten's library knows neither other processes nor its own process number.
 */
#ifndef QUERN_CLI_PROCESS_H
#define QUERN_CLI_PROCESS_H

#include <stdbool.h>

int process_id(void);
int process_user(void);
bool process_exists(int id);
/* Makes a symbolic link. Returns 0 or an errno. */
int process_link(const char *target, const char *path);

/* Native only: from now on signals that would end the program are only noted. process_signal() returns the signal's
 * number; 0: none yet. */
void process_note_signals(void);
int process_signal(void);

#endif
