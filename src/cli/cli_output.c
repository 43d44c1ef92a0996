/* SPDX-License-Identifier: MIT
 *
 * Writes new files beside their final name, and renames them when they are complete.
 */
#include "cli/cli_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool output_is_stream(const char *path)
{
    /* a regular file opened there belongs to the process that opened it */
    static const char *const open_elsewhere[] = {"/dev/std", "/dev/fd/", "/proc/"};
    struct stat info;
    for (int i = 0; i < 3; i++)
        if (!strncmp(path, open_elsewhere[i], strlen(open_elsewhere[i]))) return true;
    return !stat(path, &info) && !S_ISREG(info.st_mode);
}

int output_open(struct output *o, const char *path)
{
    *o = (struct output){.fd = -1, .path = strdup(path)};
    if (!o->path) return ENOMEM;
    bool stream = output_is_stream(path);
    int failed = stream ? 0 : claim_take(&o->claim, path);
    if (failed) return failed;
    o->fd =
        stream ? open(path, O_WRONLY | O_APPEND) : open(o->claim.part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
    o->opened = o->fd >= 0;
    o->unfinished = o->opened && !stream;
    return o->opened ? 0 : errno;
}

int output_add(struct output *o, const void *bytes, size_t n)
{
    for (const char *from = bytes; n;) {
        ssize_t put = write(o->fd, from, n);
        if (put <= 0) return put ? errno : ENOSPC;
        from += put;
        n -= (size_t)put;
    }
    return 0;
}

int output_finish(struct output *o)
{
    int fd = o->fd;
    o->fd = -1;
    if (close(fd) || (o->unfinished && rename(o->claim.part, o->path))) return errno;
    o->unfinished = false;
    return 0;
}

void output_close(struct output *o)
{
    if (o->fd >= 0) close(o->fd);
    if (o->unfinished) unlink(o->claim.part);
    claim_release(&o->claim);
    free(o->path);
    *o = (struct output){.fd = -1};
}

static const char *say(struct error *err, const char *code, const char *sentence)
{
    fail(err, ERR_PARAM, "file", 0, "%s", sentence);
    return code;
}

const char *output_explain(const struct output *o, int failed, struct error *err)
{
    if (failed == ENOMEM) return say(err, "mem/load", "Not enough memory for a new file.");
    if (failed == ENOSPC || failed == EDQUOT || failed == EFBIG)
        return say(err, "storage/quota",
                   "There is not enough room on the disk for the new file; nothing was kept of it.");
    if (o->opened) return say(err, "storage/unavailable", "The new file cannot be written.");
    if (failed != EBUSY) return say(err, "use/param", "The new file cannot be written there.");
    fail(
        err, ERR_BUSY, "file", 0,
        "Process %d is writing this file already: wait until it is done, or stop it. (If that is another program by now, remove the .part beside "
        "the file.)",
        o->claim.holder);
    return "storage/busy";
}
