/* SPDX-License-Identifier: MIT
 *
 * The crew on simulated machines: the time of a layer with each number of threads, and the share of it that the caller
 * waits.
 */
#include "check.h"
#include "base/crew.h"

enum { MOST = 4 };

struct machine {
    double ms[MOST + 1];     /* time of a layer, by number of working threads */
    double waited[MOST + 1]; /* share of that time */
};

static const struct machine calm = {{0, 4, 2, 1.4, 1}, {0, 0, 0.02, 0.03, 0.04}};
/* a machine that reports four cores but has two */
static const struct machine two_cores = {{0, 4, 2, 6, 10}, {0, 0, 0.03, 0.5, 0.7}};
/* two threads beside another program */
static const struct machine busy = {{0, 2, 2.6, 1.4, 1}, {0, 0, 0.3, 0.03, 0.03}};
static const struct machine uneven = {{0, 2, 1.5, 1.4, 1}, {0, 0, 0.3, 0.3, 0.3}}; /* some cores are slower */

/* Simulates layers of steps with this many rows for a time. Returns the mean time of a layer. */
static double play(struct crew *c, const struct machine *m, int rows, double for_ms)
{
    double spent = 0;
    int layers = 0;
    for (; spent < for_ms; layers++) {
        int n = c->working;
        CHECK(n >= 1 && n <= c->most);
        spent += m->ms[n];
        n = crew_layer(c, rows, m->ms[n], m->ms[n] * m->waited[n]);
        CHECK_EQ(n, c->working);
    }
    return spent / layers;
}

static void nothing_is_tried_while_nobody_waits(void)
{
    struct crew c;
    crew_begin(&c, MOST, MOST);
    CHECK(play(&c, &calm, 1, 100000) == calm.ms[MOST]);
    crew_begin(&c, 1, 1);
    CHECK(play(&c, &uneven, 1, 10000) == uneven.ms[1]);
}

static void fewer_work_where_that_is_faster(void)
{
    struct crew c;
    crew_begin(&c, MOST, MOST);
    play(&c, &two_cores, 1, 3000);
    CHECK_EQ(c.working, 2);
    CHECK(play(&c, &two_cores, 1, 100000) < 1.03 * two_cores.ms[2]); /* including trials with three threads */
    CHECK_EQ(c.working, 2);
    crew_begin(&c, 2, 2);
    play(&c, &busy, 1, 500);
    CHECK_EQ(c.working, 1);
    CHECK(play(&c, &busy, 1, 100000) < 1.03 * busy.ms[1]);
}

static void more_work_once_that_is_faster(void)
{
    struct crew c;
    crew_begin(&c, MOST, MOST);
    play(&c, &two_cores, 1, 60000);
    CHECK_EQ(c.working, 2);
    play(&c, &calm, 1, 20000);
    CHECK_EQ(c.working, MOST);
    crew_begin(&c, MOST, 2); /* barriers were slow while the model was loading */
    play(&c, &calm, 1, 3000);
    CHECK_EQ(c.working, MOST);
}

static void waiting_alone_changes_nothing(void)
{
    struct crew c;
    crew_begin(&c, 2, 2);
    CHECK(play(&c, &uneven, 1, 100000) < 1.01 * uneven.ms[2]);
    CHECK_EQ(c.working, 2);
}

static void steps_of_another_kind_end_a_trial(void)
{
    struct crew c;
    crew_begin(&c, 2, 2);
    for (int i = 0; i < 10000; i++) play(&c, &busy, 1 + i % 2, 30); /* too short for the six windows of a trial */
    CHECK_EQ(c.usual, 2);
    play(&c, &busy, 3, 1);
    CHECK_EQ(c.working, 2);
    play(&c, &busy, 3, 3000);
    CHECK_EQ(c.working, 1);
}

static const struct check tests[] = {
    {"nothing_is_tried_while_nobody_waits", nothing_is_tried_while_nobody_waits},
    {"fewer_work_where_that_is_faster", fewer_work_where_that_is_faster},
    {"more_work_once_that_is_faster", more_work_once_that_is_faster},
    {"waiting_alone_changes_nothing", waiting_alone_changes_nothing},
    {"steps_of_another_kind_end_a_trial", steps_of_another_kind_end_a_trial},
};

int main(int argc, char **argv) { return check_run(argc, argv, tests, sizeof tests / sizeof *tests); }
