/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_benchmark.c - how long it takes to add a run to a long history, and to
 * write a large page; it prints figures and judges nothing.
 *
 * usage: track_benchmark FOLDER [RUNS [CASES]]
 */
#include "track/page.h"
#include "track/simulate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Figures that change now and then, with a timeline of 60 points. */
static char *exact_text(uint32_t index, uint32_t run)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    uint32_t peak = 100000 + 64 * index + 4096 * (run / 97);

    if (f == NULL) {
        return NULL;
    }
    (void)fprintf(f,
                  "{\"steps\":4,\"figures\":{\"peak.param-shard\":4096,"
                  "\"peak.param-full\":%u,\"peak.grad-full\":40000,"
                  "\"peak.engine\":%u,\"collectives.all-gather\":320,"
                  "\"launches\":480},\"bound\":%u,\"timeline\":{\"step\":1,"
                  "\"units\":[\"(root)\",\"blocks.0\",\"blocks.1\"],"
                  "\"moments\":[",
                  peak / 2, peak, 180000 + 64 * index);
    for (uint32_t i = 0; i < 60; i++) {
        (void)fprintf(f, "%s[\"%s\",%u,[4096,%u,%u,%u,0,0,%u]]",
                      i > 0 ? "," : "", i < 30 ? "pre-forward" : "pre-backward",
                      i / 7 % 3, peak / 2 - i % 7 * 512,
                      i > 30 ? (i - 30) * 128 : 0,
                      i > 30 ? 40000 - i % 7 * 512 : 0, 50000 + i * 100);
    }
    (void)fprintf(f, "]}}");
    return fclose(f) == 0 ? text : NULL;
}

struct maker {
    uint32_t cases, runs;
    double **speed; /* [cases][runs] */
};

static int make_run(const struct maker *m, uint32_t run, struct results *r)
{
    struct fsdp_error error = {0};

    memset(r, 0, sizeof(*r));
    (void)snprintf(r->commit, sizeof(r->commit), "%040x", run + 1);
    r->date = 1700000000 + 3600 * (int64_t)run;
    (void)snprintf(r->machine.cpu, sizeof(r->machine.cpu), "Benchmark");
    for (uint32_t c = 0; c < m->cases; c++) {
        struct exact_result x = {.engine = "impl"};
        struct timed_result t = {.engine = "impl",
                                 .unit = "tokens/s",
                                 .higher = true,
                                 .n_samples = 9};

        (void)snprintf(x.name, sizeof(x.name),
                       "gpt.small.natural.full-shard.k4.flat.block.rank.s.adamw"
                       ".case%u",
                       c);
        memcpy(t.name, x.name, sizeof(t.name));
        x.text = exact_text(c, run);
        t.median = m->speed[c][run % m->runs];
        t.p10 = 0.97 * t.median;
        t.p90 = 1.03 * t.median;
        t.sample = calloc(t.n_samples, sizeof(*t.sample));
        for (uint32_t i = 0; t.sample != NULL && i < t.n_samples; i++) {
            t.sample[i] = t.median;
        }
        FSDP_TRY(results_add_exact(r, &x, &error));
        FSDP_TRY(results_add_timed(r, &t, &error));
    }
    return FSDP_OK;
}

/* Adds runs; *slowest is of the last ten, each opened and closed anew. */
static int fill(const char *path, const struct maker *m, uint32_t runs,
                double *slowest, struct fsdp_error *error)
{
    *slowest = 0;
    for (uint32_t run = 0; run < runs; run++) {
        struct history *h = NULL;
        struct results r;
        double begun;
        int64_t id;
        bool again;
        int status = make_run(m, run, &r);

        begun = now();
        status = status == FSDP_OK ? history_open(path, HISTORY_MAKE, &h, error)
                                   : status;
        status =
            status == FSDP_OK ? history_add(h, &r, &id, &again, error) : status;
        history_close(h);
        if (run + 10 >= runs && now() - begun > *slowest) {
            *slowest = now() - begun;
        }
        results_release(&r);
        FSDP_TRY(status);
    }
    return FSDP_OK;
}

static double **speeds(uint32_t cases, uint32_t runs)
{
    struct simulation s = simulation_defaults;
    double **all = calloc(cases, sizeof(*all));

    s.runs = runs;
    for (uint32_t c = 0; all != NULL && c < cases; c++) {
        all[c] = calloc(runs, sizeof(**all));
        if (all[c] == NULL) {
            return NULL;
        }
        simulate_history(&s, c, runs / 3 + c % 200, all[c]);
    }
    return all;
}

static int write_page(const char *db, const char *path, double *seconds,
                      struct fsdp_error *error)
{
    struct history *h = NULL;
    FILE *f = fopen(path, "we");
    double begun = now();
    int status =
        f != NULL ? history_open(db, HISTORY_READ, &h, error) : FSDP_ERR_IO;

    status = status == FSDP_OK ? page_write(h, 0, f, error) : status;
    history_close(h);
    if (f != NULL && fclose(f) != 0) {
        status = FSDP_ERR_IO;
    }
    *seconds = now() - begun;
    return status;
}

static int run_all(const char *folder, uint32_t runs, uint32_t cases,
                   struct fsdp_error *error)
{
    struct maker m = {.cases = cases, .runs = 500};
    char db[512];
    char page[512];
    struct stat s;
    double slowest;
    double seconds;

    m.speed = speeds(cases > 200 ? cases : 200, 500);
    if (m.speed == NULL) {
        return FSDP_ERR_NOMEM;
    }
    (void)snprintf(db, sizeof(db), "%s/long.db", folder);
    (void)unlink(db);
    FSDP_TRY(fill(db, &m, runs, &slowest, error));
    printf("adding a run of %u cases to a history of %u runs: %.1f ms (slowest "
           "of the last ten)\n",
           cases, runs, 1e3 * slowest);
    if (stat(db, &s) == 0) {
        printf("  the history has %.1f MB\n", 1e-6 * (double)s.st_size);
    }
    (void)unlink(db);

    m.cases = 200;
    (void)snprintf(db, sizeof(db), "%s/large.db", folder);
    (void)snprintf(page, sizeof(page), "%s/large.html", folder);
    (void)unlink(db);
    FSDP_TRY(fill(db, &m, 500, &slowest, error));
    FSDP_TRY(write_page(db, page, &seconds, error));
    if (stat(page, &s) == 0) {
        printf("the page of 200 cases, 500 runs: %.2f MB, %.2f s\n",
               1e-6 * (double)s.st_size, seconds);
    }
    (void)unlink(db);
    return FSDP_OK;
}

int main(int argc, char **argv)
{
    struct fsdp_error error = {0};
    uint32_t runs = argc > 2 ? (uint32_t)atoi(argv[2]) : 10000;
    uint32_t cases = argc > 3 ? (uint32_t)atoi(argv[3]) : 50;

    if (argc < 2 || runs == 0 || cases == 0) {
        fprintf(stderr, "usage: track_benchmark FOLDER [RUNS [CASES]]\n");
        return 64;
    }
    if (run_all(argv[1], runs, cases, &error) != FSDP_OK) {
        fprintf(stderr, "track_benchmark: %s\n", error.message);
        return 1;
    }
    return 0;
}
