/* SPDX-License-Identifier: MIT
 *
 * The test harness: a table of named functions, run in order. A failed check ends its test, not the program.
 *
 * A test program is main() calling check_run(argc, argv, tests, count). argv[1] is the folder of fixtures
 * (check_fixtures); any further arguments choose tests by name.
 */
#ifndef QUERN_CHECK_H
#define QUERN_CHECK_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct check {
    const char *name;
    void (*run)(void);
};

/* Fresh memory is filled with twos: pages fresh from the system are all zero, and hide code that relies on zeros. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "malloc_fill_byte=2:max_malloc_fill_size=65536"; }

/* The size of a test: `usual` for each commit, `longer` before a release (npm run test:long). */
static inline long check_length(long usual, long longer) { return getenv("QUERN_LONG") ? longer : usual; }

/* The step through many similar cases: every nth for each commit, each of them before a release. */
static inline size_t check_every(size_t n) { return (size_t)check_length((long)n, 1); }

static const char *check_fixtures = "tests/fixtures";
static const char *check_name;
static jmp_buf check_exit;

#define CHECK(condition) \
    do { \
        if (!(condition)) check_fail(__FILE__, __LINE__, #condition); \
    } while (0)

/* Integers of any type; both values are printed. */
#define CHECK_EQ(actual, expected) check_equal(__FILE__, __LINE__, #actual, (long long)(actual), (long long)(expected))

static inline void check_fail(const char *file, int line, const char *text)
{
    printf("not ok %s: %s:%d: %s\n", check_name, file, line, text);
    longjmp(check_exit, 1);
}

static inline void check_equal(const char *file, int line, const char *text, long long actual, long long expected)
{
    if (actual == expected) return;
    char message[300];
    snprintf(message, sizeof message, "%.200s is %lld, expected %lld", text, actual, expected);
    check_fail(file, line, message);
}

static inline int check_chosen(int argc, char **argv, const char *name)
{
    for (int i = 2; i < argc; i++)
        if (!strcmp(argv[i], name)) return 1;
    return argc <= 2;
}

/* A function of its own, outside the loop: a longjmp would leave the loop's variables undefined. */
static inline int check_passes(const struct check *test)
{
    check_name = test->name;
    if (setjmp(check_exit)) return 0;
    test->run();
    printf("ok %s\n", test->name);
    return 1;
}

/* Returns the exit status. */
static inline int check_run(int argc, char **argv, const struct check *tests, size_t count)
{
    int passed = 0, failed = 0;
    if (argc > 1) check_fixtures = argv[1];
    for (size_t i = 0; i < count; i++) {
        if (!check_chosen(argc, argv, tests[i].name)) continue;
        if (check_passes(&tests[i])) passed++;
        else failed++;
        fflush(stdout);
    }
    printf("%d passed, %d failed\n", passed, failed);
    fflush(stdout);
    if (failed) _exit(1); /* a longjmp leaves leaks, whose report would fill the screen */
    return 0;
}

/* Whether `word` is in a list separated by commas. */
static inline bool listed(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; at; at = strchr(at, ','), at += at != NULL)
        if (!strncmp(at, word, n) && (at[n] == ',' || at[n] == 0)) return true;
    return false;
}

#endif
