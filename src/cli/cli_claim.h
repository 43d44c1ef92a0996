/* SPDX-License-Identifier: MIT
 *
 * Makes sure that one process at a time writes a file. The lock, .NAME.quern-lock, is a symbolic link to the unfinished
 * file beside the new one, whose name says which process of which machine writes it. The next writer removes the lock
 * and the file of a dead process, if both belong to the same user. It ignores locks that it cannot judge (another
 * machine or container, something else with the lock's name, a file system without links): new files are complete even
 * then, but two processes may write one at the same time.
 */
#ifndef QUERN_CLI_CLAIM_H
#define QUERN_CLI_CLAIM_H

#include <stdbool.h>

struct claim {
    char *part;  /* where to write the new file: a name beside it that is never reused */
    char *lock;
    bool held;   /* this process has the lock */
    int holder;  /* after EBUSY: the process that writes the file */
};

/* Returns 0; EBUSY: another process writes that file; or another errno. */
int claim_take(struct claim *c, const char *path);
/* Must also be called after a failure. */
void claim_release(struct claim *c);

#endif
