/* SPDX-License-Identifier: MIT
 *
 * Measures how fast plain code reads memory: `read THREADS MIB` sums up a buffer, each thread its own part, and prints
 * the median of several passes in GB/s. The buffer is as large as a model's weights, so that no processor cache holds
 * it.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PASSES = 7, MAX_THREADS = 64, LANES = 32 };

struct part {
    const uint64_t *words;
    size_t n;
    uint64_t sum;
};

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *sum_part(void *argument) {
    struct part *part = argument;
    uint64_t lanes[LANES] = {0};
    for (size_t i = 0; i < part->n; i += LANES)
        for (size_t j = 0; j < LANES; j++) lanes[j] += part->words[i + j];
    for (size_t j = 0; j < LANES; j++) part->sum += lanes[j];
    return NULL;
}

static double pass(struct part *parts, int n_threads) {
    pthread_t threads[MAX_THREADS];
    double start = seconds();
    for (int t = 1; t < n_threads; t++)
        if (pthread_create(&threads[t], NULL, sum_part, &parts[t])) exit(1);
    sum_part(&parts[0]);
    for (int t = 1; t < n_threads; t++) pthread_join(threads[t], NULL);
    return seconds() - start;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    int n_threads = argc == 3 ? atoi(argv[1]) : 0;
    size_t mib = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (n_threads < 1 || n_threads > MAX_THREADS || mib < 1) return fprintf(stderr, "usage: read THREADS MIB\n"), 2;
    size_t words = (mib << 20) / sizeof(uint64_t), each = words / (size_t)n_threads / LANES * LANES;
    uint64_t *buffer = malloc(words * sizeof *buffer);
    if (!buffer) return 1;
    for (size_t i = 0; i < words; i++) buffer[i] = i;
    struct part parts[MAX_THREADS];
    for (int t = 0; t < n_threads; t++) parts[t] = (struct part){buffer + (size_t)t * each, each, 0};
    double times[PASSES];
    for (int i = 0; i < PASSES; i++) times[i] = pass(parts, n_threads);
    qsort(times, PASSES, sizeof *times, compare);
    printf("%.3f %d\n", 1e-9 * (double)(each * sizeof(uint64_t)) * n_threads / times[PASSES / 2],
           (int)(parts[0].sum & 1));
    free(buffer);
    return 0;
}
