/* SPDX-License-Identifier: MIT
 *
 * Runs a fuzz target without libFuzzer: over every file of its corpus, and over a few mutations of each, which are
 * always the same. So anything that fuzzing found once is checked on each commit, with any compiler.
 *
 *   build/sanitize/replay/gguf tests/fuzz/corpus/gguf
 */
#include "load.h"

#include <dirent.h>
#include <stdio.h>

enum { MUTATIONS = 8, SIZE_MOST = 1 << 16, FILES_MOST = 1024 };

__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

/* Changes, removes or inserts one byte, at a place that depends on the contents. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most)
{
    uint64_t random = seed_of(data, size);
    size_t at = (size_t)below(&random, size + 1), what = (size_t)below(&random, 3);
    if (what == 0 && at < size) {
        memmove(data + at, data + at + 1, size - at - 1);
        return size - 1;
    }
    if (what == 1 && size < most) {
        memmove(data + at + 1, data + at, size - at);
        data[at] = (uint8_t)below(&random, 256);
        return size + 1;
    }
    if (at < size) data[at] = (uint8_t)below(&random, 256);
    return size;
}

static void run(const uint8_t *data, size_t size)
{
    uint8_t *own = malloc(size + (size == 0));
    require(own != NULL);
    if (size) memcpy(own, data, size);
    LLVMFuzzerTestOneInput(own, size);
    free(own);
}

static void replay(const char *folder, const char *name)
{
    static uint8_t data[SIZE_MOST];
    char path[1024];
    snprintf(path, sizeof path, "%.500s/%.500s", folder, name);
    FILE *f = fopen(path, "rb");
    require(f != NULL);
    size_t size = fread(data, 1, sizeof data, f);
    fclose(f);
    run(data, size);
    for (unsigned seed = 1; seed <= MUTATIONS; seed++) { /* each mutation changes the previous one's result */
        size = (LLVMFuzzerCustomMutator ? LLVMFuzzerCustomMutator(data, size, sizeof data, seed)
                                        : LLVMFuzzerMutate(data, size, sizeof data));
        run(data, size);
    }
}

static int compare(const void *a, const void *b) { return strcmp(a, b); }

int main(int argc, char **argv)
{
    static char names[FILES_MOST][256];
    size_t n = 0;
    DIR *d = argc == 2 ? opendir(argv[1]) : NULL;
    if (!d) return fprintf(stderr, "usage: %s FOLDER\n", argv[0]), 2;
    for (struct dirent *entry; n < FILES_MOST && (entry = readdir(d));)
        if (entry->d_name[0] != '.') snprintf(names[n++], sizeof *names, "%s", entry->d_name);
    closedir(d);
    qsort(names, n, sizeof *names, compare);
    for (size_t i = 0; i < n; i++) replay(argv[1], names[i]);
    printf("ok %s: %zu files, %d mutations of each\n", argv[1], n, MUTATIONS);
    return n == 0;
}
