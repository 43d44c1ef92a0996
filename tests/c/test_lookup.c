/* SPDX-License-Identifier: MIT
 *
 * Drafts by look-up: the longest earlier occurrence, the latest of equals, is found as by comparing all places, in
 * whatever pieces the ids come, and in no more memory than was said.
 */
#include "engine/lookup.h"

#include "model_file.h"

#include <string.h>

enum { ROOM = 3000 };

/* By comparing all places. */
static int compared(const uint64_t *ids, int n, int *length)
{
    int best = 0;
    *length = 0;
    for (int at = n - 1; at >= 2; at--) {
        int same = 0;
        while (same < LOOKUP_LONGEST && same < at && ids[at - 1 - same] == ids[n - 1 - same]) same++;
        if (same >= 2 && same > *length) *length = same, best = at;
    }
    return best;
}

static void fill(uint64_t *ids, int kinds, uint64_t *seed)
{
    for (int i = 0; i < ROOM; i++) ids[i] = (uint64_t)random_below(seed, kinds);
    for (int i = 500; i < ROOM; i += 700) memcpy(ids + i, ids + i - 400, 150 * sizeof *ids); /* copied passages */
}

/* Few kinds of ids make more earlier places than are compared: then what is found is right, but may be shorter. */
static void as_compared(void)
{
    uint64_t seed = 1;
    for (int kinds = 1; kinds < 2000; kinds = kinds * 3 + 1) {
        uint64_t ids[ROOM];
        struct mem m = {.limit = SIZE_MAX};
        struct lookup l = {0};
        int found = 0;
        fill(ids, kinds, &seed);
        CHECK(lookup_reserve(&m, &l, ROOM));
        CHECK_EQ(m.used, lookup_cost(ROOM));
        for (int n = 0; n <= ROOM; n += 1 + random_below(&seed, 3)) {
            int length, longest, at = lookup_find(&l, ids, n, &length), best = compared(ids, n, &longest);
            CHECK((at == 0) == (best == 0));
            if (kinds > 100) CHECK(at == best && length == longest);
            CHECK((!at || at < n) && length <= longest && length <= at);
            for (int i = 1; i <= length; i++) CHECK(ids[at - i] == ids[n - i]);
            found += at > 0;
        }
        CHECK(found > 100);
        int length, at = lookup_find(&l, ids, ROOM, &length);
        lookup_forget(&l);
        CHECK_EQ(lookup_find(&l, ids, 2, &length), 0);
        CHECK_EQ(lookup_find(&l, ids, ROOM, &length), at);
        lookup_free(&m, &l);
        CHECK_EQ(m.used, 0);
    }
}

static void room_grows(void)
{
    struct mem m = {.limit = SIZE_MAX}, small = {.limit = 500};
    struct lookup l = {0};
    uint64_t ids[ROOM];
    int length;
    for (int i = 0; i < ROOM; i++) ids[i] = (uint64_t)(i % 100);
    for (int room = 10; room <= ROOM; room *= 3) {
        CHECK(lookup_reserve(&m, &l, room));
        CHECK_EQ(lookup_find(&l, ids, room, &length), room > 100 ? room - 100 : 0);
        CHECK(lookup_reserve(&m, &l, room / 2) && l.room == room);
    }
    CHECK(lookup_cost(1 << 17) <= 8 * (1 << 17) + 64);
    lookup_free(&m, &l);
    CHECK(!lookup_reserve(&small, &l, ROOM) && l.room == 0 && small.used == 0);
}

static const struct check tests[] = {{"as_compared", as_compared}, {"room_grows", room_grows}};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
