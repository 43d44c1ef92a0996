/* SPDX-License-Identifier: MIT
 *
 * Who writes a file: one process at a time. The lock, .NAME.quern-lock, is a symbolic link to the file that grows
 * beside the new one, and that one's name says which process of which machine writes it. What a dead process has left,
 * lock and file, the next writer removes, if both are this user's. What cannot be judged (a writer on another machine
 * or in another container, something else by the lock's name, a file system without links) it neither waits for nor
 * touches: new files are whole then, too, only that two may be in the making at a time.
 */
#ifndef QUERN_CLI_CLAIM_H
#define QUERN_CLI_CLAIM_H

#include <stdbool.h>

struct claim {
    char *part;  /* where the new file is to grow: a name beside it that nobody has had before */
    char *lock;
    bool held;   /* the lock is ours */
    int holder;  /* after EBUSY: the process that writes */
};

/* 0; EBUSY: somebody else writes that file; or another errno. */
int claim_take(struct claim *c, const char *path);
/* Also after a failure. */
void claim_release(struct claim *c);

#endif
