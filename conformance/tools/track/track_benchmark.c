/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_benchmark.c - how long it takes to add a run to a long history, and to
 * write a large page; it prints figures and judges nothing.
 *
 * usage: track_benchmark FOLDER [RUNS [CASES [SCRATCH]]]
 * The long history is made in SCRATCH (in memory, say), then copied.
 */
#include "tools/track/page.h"
#include "tools/track/simulate.h"

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

    if (!f) {
        return NULL;
    }
    fprintf(f,
            "{\"steps\":4,\"figures\":{\"peak.param-shard\":4096,"
            "\"peak.param-full\":%u,\"peak.grad-full\":40000,"
            "\"peak.engine\":%u,\"collectives.all-gather\":320,"
            "\"launches\":480},\"bound\":%u,\"timeline\":{\"step\":1,"
            "\"units\":[\"(root)\",\"blocks.0\",\"blocks.1\"],"
            "\"moments\":[",
            peak / 2, peak, 180000 + 64 * index);
    for (uint32_t i = 0; i < 60; i++) {
        fprintf(f, "%s[\"%s\",%u,[4096,%u,%u,%u,0,0,%u]]", i > 0 ? "," : "",
                i < 30 ? "pre-forward" : "pre-backward", i / 7 % 3,
                peak / 2 - i % 7 * 512, i > 30 ? (i - 30) * 128 : 0,
                i > 30 ? 40000 - i % 7 * 512 : 0, 50000 + i * 100);
    }
    fprintf(f, "]}}");
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
    snprintf(r->commit, sizeof(r->commit), "%040x", run + 1);
    r->date = 1700000000 + 3600 * (int64_t)run;
    snprintf(r->machine.cpu, sizeof(r->machine.cpu), "Benchmark");
    for (uint32_t c = 0; c < m->cases; c++) {
        struct exact_result x = {.engine = "impl"};
        struct timed_result t = {.engine = "impl",
                                 .unit = "tokens/s",
                                 .higher = true,
                                 .n_samples = 9};

        snprintf(x.name, sizeof(x.name),
                 "gpt.small.natural.full-shard.k4.flat.block.rank.s.adamw"
                 ".case%u",
                 c);
        memcpy(t.name, x.name, sizeof(t.name));
        x.text = exact_text(c, run);
        t.median = m->speed[c][run % m->runs];
        t.p10 = 0.97 * t.median;
        t.p90 = 1.03 * t.median;
        t.sample = calloc(t.n_samples, sizeof(*t.sample));
        for (uint32_t i = 0; t.sample && i < t.n_samples; i++) {
            t.sample[i] = t.median;
        }
        FSDP_TRY(results_add_exact(r, &x, &error));
        FSDP_TRY(results_add_timed(r, &t, &error));
    }
    return FSDP_OK;
}

/* Wall and processor time of the slowest addition. */
struct cost {
    double wall, processor;
};

static double processor_time(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Adds runs first to end - 1; each opens the history anew. */
static int fill(const char *path, const struct maker *m, uint32_t first,
                uint32_t end, struct cost *slowest, struct fsdp_error *error)
{
    *slowest = (struct cost){0, 0};
    for (uint32_t run = first; run < end; run++) {
        struct history *h = NULL;
        struct results r;
        struct cost c;
        int64_t id;
        bool again;
        int status = make_run(m, run, &r);

        c = (struct cost){now(), processor_time()};
        status = status == FSDP_OK ? history_open(path, HISTORY_MAKE, &h, error)
                                   : status;
        status =
            status == FSDP_OK ? history_add(h, &r, &id, &again, error) : status;
        history_close(h);
        c = (struct cost){now() - c.wall, processor_time() - c.processor};
        *slowest = c.wall > slowest->wall ? c : *slowest;
        results_release(&r);
        FSDP_TRY(status);
    }
    return FSDP_OK;
}

static int copy_file(const char *from, const char *to)
{
    static char part[1 << 16];
    FILE *in = fopen(from, "re");
    FILE *out = fopen(to, "we");
    bool ok = in && out;

    while (ok) {
        size_t n = fread(part, 1, sizeof(part), in);

        ok = fwrite(part, 1, n, out) == n && ferror(in) == 0;
        if (n == 0) {
            break;
        }
    }
    if (in) {
        (void)fclose(in);
    }
    ok = out && fclose(out) == 0 && ok;
    return ok ? FSDP_OK : FSDP_ERR_IO;
}

static double **speeds(uint32_t cases, uint32_t runs)
{
    struct simulation s = simulation_defaults;
    double **all = calloc(cases, sizeof(*all));

    s.runs = runs;
    for (uint32_t c = 0; all && c < cases; c++) {
        all[c] = calloc(runs, sizeof(**all));
        if (!all[c]) {
            while (c-- > 0) {
                free(all[c]);
            }
            free(all);
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
    int status = f ? history_open(db, HISTORY_READ, &h, error) : FSDP_ERR_IO;

    status = status == FSDP_OK ? page_write(h, 0, NULL, f, error) : status;
    history_close(h);
    if (f && fclose(f) != 0) {
        status = FSDP_ERR_IO;
    }
    *seconds = now() - begun;
    return status;
}

static int long_history(const char *folder, const char *scratch,
                        const struct maker *m, uint32_t runs,
                        struct fsdp_error *error)
{
    char made[512];
    char db[512];
    struct stat s;
    struct cost c;

    snprintf(made, sizeof(made), "%s/made.db", scratch);
    snprintf(db, sizeof(db), "%s/long.db", folder);
    (void)unlink(made);
    FSDP_TRY(fill(made, m, 0, runs, &c, error));
    FSDP_TRY(copy_file(made, db));
    (void)unlink(made);
    FSDP_TRY(fill(db, m, runs, runs + 10, &c, error));
    printf("adding a run of %u cases to a history of %u runs: %.1f ms, %.1f ms "
           "of the processor (slowest of ten)\n",
           m->cases, runs, 1e3 * c.wall, 1e3 * c.processor);
    if (stat(db, &s) == 0) {
        printf("  the history has %.1f MB\n", 1e-6 * (double)s.st_size);
    }
    (void)unlink(db);
    return FSDP_OK;
}

static int large_page(const char *folder, const char *scratch,
                      const struct maker *m, struct fsdp_error *error)
{
    char page[512];
    char db[512];
    struct stat s;
    struct cost c;
    double seconds;
    double processor;

    snprintf(db, sizeof(db), "%s/large.db", scratch);
    snprintf(page, sizeof(page), "%s/large.html", folder);
    (void)unlink(db);
    FSDP_TRY(fill(db, m, 0, 500, &c, error));
    processor = processor_time();
    FSDP_TRY(write_page(db, page, &seconds, error));
    processor = processor_time() - processor;
    if (stat(page, &s) == 0) {
        printf("the page of %u cases, 500 runs: %.2f MB, %.2f s, %.2f s of the "
               "processor\n",
               m->cases, 1e-6 * (double)s.st_size, seconds, processor);
    }
    (void)unlink(db);
    return FSDP_OK;
}

int main(int argc, char **argv)
{
    struct fsdp_error error = {0};
    uint32_t runs = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 10000;
    uint32_t cases = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 50;
    const char *scratch = argc > 4 ? argv[4] : argc > 1 ? argv[1] : NULL;
    struct maker m = {.cases = cases, .runs = 500};
    int status;

    if (!scratch || runs == 0 || cases == 0) {
        fprintf(stderr,
                "usage: track_benchmark FOLDER [RUNS [CASES [SCRATCH]]]\n");
        return 64;
    }
    m.speed = speeds(cases > 200 ? cases : 200, 500);
    status = m.speed ? FSDP_OK : FSDP_ERR_NOMEM;
    if (status == FSDP_OK) {
        status = long_history(argv[1], scratch, &m, runs, &error);
    }
    if (status == FSDP_OK) {
        m.cases = 200;
        status = large_page(argv[1], scratch, &m, &error);
    }
    if (status != FSDP_OK) {
        fprintf(stderr, "track_benchmark: %s\n",
                error.message[0] != '\0' ? error.message
                                         : fsdp_status_text(status));
        return 1;
    }
    return 0;
}
