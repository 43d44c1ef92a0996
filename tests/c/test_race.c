/* SPDX-License-Identifier: MIT
 *
 * The race between the orders of reading weights: its winner and its end.
 */
#include "check.h"
#include "compute/cpu/cpu.h"

/* Runs a race in which order i reads `rate[i]` bytes per ms, but `noise` times slower in its first heats. Returns the
 * bytes read. */
static double run(struct race *r, const double rate[ORDERS], double noise)
{
    double bytes = 0;
    for (int heats = 0; !race_over(r) && bytes < 1e9; bytes += 1e6) {
        enum order order = race_order(r);
        int before = r->heat;
        race_add(r, 1e6, 1e6 / rate[order] * (heats < ORDERS ? noise : 1));
        heats += r->heat - before;
    }
    return bytes;
}

static void fastest_wins(void)
{
    for (int noise = 1; noise <= 10; noise += 9) {
        struct race a = {0}, b = {0};
        run(&a, (const double[]){[TOGETHER] = 9e6, [IN_TURN] = 14e6}, noise);
        run(&b, (const double[]){[TOGETHER] = 24e6, [IN_TURN] = 12e6}, noise);
        CHECK(race_order(&a) == IN_TURN);
        CHECK(race_order(&b) == TOGETHER);
    }
}

static void all_get_their_chances(void)
{
    struct race r = {0};
    int tried[ORDERS] = {0};
    CHECK(!race_over(&r));
    for (int heat = 0; heat < 2 * ORDERS; heat++) {
        tried[race_order(&r)]++;
        race_add(&r, 1e9, 1);
    }
    for (int i = 0; i < ORDERS; i++) CHECK(tried[i] == 2);
}

static void soon_over(void)
{
    struct race r = {0};
    CHECK(run(&r, (const double[]){1e6, 1e6}, 1) <= 128e6);
    CHECK(race_over(&r));
    CHECK(race_order(&r) == TOGETHER);
}

/* The next race corrects a result from before the kernels were compiled. */
static void run_again(void)
{
    struct race r = {.rest = 1000};
    int rested = 0;
    run(&r, (const double[]){[TOGETHER] = 9e6, [IN_TURN] = 5e6}, 1);
    while (!race_on(&r) && rested < 2000) {
        CHECK(race_order(&r) == TOGETHER);
        rested++;
    }
    CHECK_EQ(rested, 999);
    run(&r, (const double[]){[TOGETHER] = 9e6, [IN_TURN] = 14e6}, 1);
    CHECK(race_order(&r) == IN_TURN);
}

static const struct check tests[] = {
    {"fastest_wins", fastest_wins},
    {"all_get_their_chances", all_get_their_chances},
    {"soon_over", soon_over},
    {"run_again", run_again},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
