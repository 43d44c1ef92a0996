/* SPDX-License-Identifier: MIT
 *
 * Processes and signals for the native command line.
 */
#include "cli/cli_process.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

int process_id(void) { return (int)getpid(); }
int process_user(void) { return (int)geteuid(); }
bool process_exists(int id) { return kill(id, 0) == 0 || errno == EPERM; }
int process_link(const char *target, const char *path) { return symlink(target, path) ? errno : 0; }

static volatile sig_atomic_t noted;

static void note(int number) { noted = number; }

void process_note_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 3; i++)
        if (signal(numbers[i], note) == SIG_IGN) signal(numbers[i], SIG_IGN); /* keeps ignoring it, for nohup */
    signal(SIGXFSZ, SIG_IGN); /* exceeding the file size limit becomes a write error */
}

int process_signal(void) { return noted; }
