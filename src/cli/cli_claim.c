/* SPDX-License-Identifier: MIT
 *
 * The lock of a new file. Names of unfinished files are never reused, so several processes may safely remove the file
 * of a dead process.
 */
#include "cli/cli_claim.h"

#include "base/base.h"
#include "base/hash.h"
#include "cli/cli_process.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    STEM = 150,         /* bytes of the new file's name that go into the other names; names have up to 255 */
    NAME = STEM + 100,
    TRIES = 100,
    PATIENCE = 50,      /* tries before a lock without a file is removed */
    PAUSE_US = 10000
};

/* --- processes ------------------------------------------------------------------------------------------------- */

struct writer {
    int id;
    uint64_t start; /* ticks of the machine's clock; 0: unknown on this system */
    uint32_t world;
};

#define ENDED UINT64_MAX

static size_t read_text(const char *path, char *text, size_t room)
{
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, room - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    return n;
}

/* When a process began; tells apart processes with the same number. */
static uint64_t start_of(int id)
{
    char path[32], text[1024], state;
    uint64_t start;
    snprintf(path, sizeof path, "/proc/%d/stat", id);
    read_text(path, text, sizeof text);
    const char *rest = strrchr(text, ')'); /* the program's name comes before it, and can be anything */
    if (!rest ||
        sscanf(rest, ") %c %*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s %" SCNu64, &state, &start) != 2)
        return 0;
    return state == 'Z' || state == 'X' ? ENDED : start;
}

/* Identifies where process numbers are valid: this machine, or this container. */
static uint32_t this_world(void)
{
    char text[600];
    uint8_t hash[HASH_BYTES];
    size_t n = read_text("/proc/sys/kernel/hostname", text, 300);
    ssize_t more = readlink("/proc/self/ns/pid", text + n, 300);
    hash128(text, n + (size_t)(more > 0 ? more : 0), hash);
    return load_u32(hash);
}

static bool lives(const struct writer *w)
{
    if (!process_exists(w->id)) return false;
    uint64_t start = start_of(w->id);
    return !start || !w->start || start == w->start;
}

/* --- names ----------------------------------------------------------------------------------------------------- */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static char *beside(const char *path, const char *name)
{
    size_t folder = (size_t)(base_of(path) - path), size = folder + strlen(name) + 1;
    char *joined = malloc(size);
    if (joined) snprintf(joined, size, "%.*s%s", (int)folder, path, name);
    return joined;
}

static void name_part(char name[NAME], const char *stem, const struct writer *w, uint64_t random)
{
    snprintf(name, NAME, "%.*s.%d-%" PRIu64 "-%08" PRIx32 "-%016" PRIx64 ".part", STEM, stem, w->id, w->start, w->world,
             random);
}

/* Whether a name was made by name_part(). */
static bool read_part(const char *name, const char *stem, struct writer *w)
{
    char again[NAME];
    uint64_t random;
    size_t n = strnlen(stem, STEM);
    if (strncmp(name, stem, n) ||
        sscanf(name + n, ".%d-%" SCNu64 "-%" SCNx32 "-%" SCNx64, &w->id, &w->start, &w->world, &random) != 4)
        return false;
    name_part(again, stem, w, random);
    return w->id > 0 && !strcmp(name, again);
}

/* --- the lock -------------------------------------------------------------------------------------------------- */

enum state {
    GONE,    /* no lock */
    HELD,
    BARE,    /* the file does not exist (yet, or any more) */
    LEFT,    /* left by a dead process */
    FOREIGN  /* of another user or machine, or not a lock at all */
};

/* Finds the state of the lock, and the path of its file, which the caller frees (NULL: unknown). Other processes may
 * change both meanwhile: what has disappeared is not FOREIGN. */
static enum state look(struct claim *c, const char *stem, char **part)
{
    char name[NAME + 1];
    struct writer w;
    struct stat lock, file;
    *part = NULL;
    ssize_t n = lstat(c->lock, &lock) ? -1 : readlink(c->lock, name, NAME);
    if (n < 0) return errno == ENOENT ? GONE : FOREIGN;
    name[n] = 0;
    if (!read_part(name, stem, &w) || w.world != this_world() || !(*part = beside(c->lock, name))) return FOREIGN;
    int user = process_user();
    bool mine = (int)lock.st_uid == user;
    if (lstat(*part, &file)) return mine && errno == ENOENT ? BARE : FOREIGN;
    if (!lives(&w)) return mine && S_ISREG(file.st_mode) && (int)file.st_uid == user ? LEFT : FOREIGN;
    c->holder = w.id;
    return HELD;
}

/* If several processes find a dead process's lock, the one that removes its file also removes the lock. The others wait
 * for that, but not forever. */
static enum state look_and_clear(struct claim *c, const char *stem, int tries)
{
    char *part;
    enum state state = look(c, stem, &part);
    if ((state == LEFT && !unlink(part)) || (state == BARE && tries >= PATIENCE)) unlink(c->lock);
    else if (state == BARE || state == LEFT) usleep(PAUSE_US);
    free(part);
    return state;
}

int claim_take(struct claim *c, const char *path)
{
    char name[NAME], lock[NAME];
    const char *stem = base_of(path);
    struct writer self = {process_id(), start_of(process_id()), this_world()};
    uint64_t random;
    *c = (struct claim){0};
    if (!*stem) return ENOENT;
    if (getentropy(&random, sizeof random)) return errno;
    name_part(name, stem, &self, random);
    snprintf(lock, sizeof lock, ".%.*s.quern-lock", STEM, stem);
    c->part = beside(path, name);
    c->lock = beside(path, lock);
    if (!c->part || !c->lock) return ENOMEM;
    for (int tries = 0; tries < TRIES; tries++) {
        int failed = process_link(name, c->lock);
        c->held = !failed;
        if (failed != EEXIST) return 0;
        enum state state = look_and_clear(c, stem, tries);
        if (state == HELD) return EBUSY;
        if (state == FOREIGN) return 0;
    }
    return 0;
}

void claim_release(struct claim *c)
{
    char name[NAME + 1];
    ssize_t n = c->held ? readlink(c->lock, name, NAME) : 0;
    if (n > 0) {
        name[n] = 0;
        if (!strcmp(name, base_of(c->part))) unlink(c->lock);
    }
    free(c->part);
    free(c->lock);
    *c = (struct claim){0};
}
