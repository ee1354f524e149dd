/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_fuzz.c - the entry of a fuzzer (libFuzzer's, or any with that
 * interface) to the readers of descriptions and of clusters, and to what is
 * planned of a model that they let through. The first byte says which: a
 * cluster (bit 0 is 1), or a model; its other bits how it is planned.
 */
#include "checkpoint/fuzzing.h"
#include "tools/plan/plan_advice.h"

#include <math.h>
#include <string.h>

enum {
    MOST = 200 /* modules; more of them are slow and show nothing new */
};

/* A refusal says why. */
static void check_said(int status, const struct fsdp_error *error)
{
    require(status == FSDP_OK || error->message[0] != '\0');
}

static void check_row(const struct plan_row *row)
{
    const struct plan_bytes *const b = &row->bytes;
    uint64_t sum = b->ahead;

    for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
        sum += b->fullest.live[k];
        require(b->peak[k] <= INT64_MAX && b->rest.live[k] <= b->peak[k]);
    }
    require(sum == b->peak_sum && sum <= INT64_MAX);
    require(b->peak_parameters <= b->peak_sum && b->rest_sum <= b->peak_sum);
    require(b->sent_sum <= INT64_MAX && b->own_last <= b->elements);
    require(row->time.seconds >= row->time.compute &&
            row->time.exposed >= 0.0 && !isnan(row->time.seconds));
}

static void plan(const struct plan_model *m, uint8_t how)
{
    static const uint32_t worlds[] = {1, 2, 6, 64, 1024, 65536};
    static const struct cluster on = {.host_ranks = 8,
                                      .peak_flops = 1e12,
                                      .flops = 1e12,
                                      .contention = 0.5,
                                      .memory_bandwidth = 1e12,
                                      .host_bandwidth = 1e11,
                                      .network_bandwidth = 1e10,
                                      .latency = 1e-5};
    static const struct plan_batch batch = {100, 10, 0.5};
    const struct plan_ask ask = {
        .c = {.precision = (how >> 4 & 3) < 3 ? how >> 4 & 3 : CASE_UNITS,
              .ranks = worlds[(how >> 1) % 6],
              .replicas = 1,
              .layout = how >> 6 & 1,
              .keep_root = how >> 5 & 1,
              .optimizer = FSDP_OPTIMIZER_ADAMW,
              .microbatches = 1 + (how >> 7 & 1),
              .sync = {1, how >> 7 & 1},
              .prefetch_forward = how >> 3 & 1,
              .prefetch_backward = how >> 3 & 3,
              .reduces_in_flight = how >> 4 & 1},
        .model = &m->model,
        .units = &m->units.units};
    struct plan_table t = {.n = 0};
    struct fsdp_error error = {0};
    int status = plan_table_make(&ask, false, 8, 1 << 20, 0, &t, &error);

    if (status == FSDP_OK) {
        status = plan_table_time(&ask, m, &batch, &on, &t, &error);
    }
    check_said(status, &error);
    for (uint32_t i = 0; status == FSDP_OK && i < t.n; i++) {
        if (t.row[i].possible) {
            check_row(&t.row[i]);
        }
    }
    plan_table_release(&t);
}

static bool is_small(const struct description *d)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < d->n_parts; i++) {
        n += (uint64_t)d->part[i].times * d->part[i].n_modules;
    }
    return n <= MOST;
}

static void read_model(const char *text, size_t bytes, uint8_t how)
{
    struct description d;
    struct plan_model m = {.build = NULL};
    struct fsdp_error error = {0};
    int status = description_parse(text, bytes, "file", &d, &error);

    check_said(status, &error);
    if (status == FSDP_OK && is_small(&d)) {
        status = plan_model_of_description(&d, &m, &error);
        check_said(status, &error);
        if (status == FSDP_OK) {
            plan(&m, how);
        }
    }
    plan_model_release(&m);
    description_release(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes == 0) {
        return 0;
    }
    if ((data[0] & 1) != 0) {
        struct fsdp_error error = {0};
        struct cluster c;
        const int status = cluster_parse((const char *)data + 1, bytes - 1,
                                         "file", &c, &error);

        check_said(status, &error);
        require(status != FSDP_OK ||
                (c.host_bandwidth > 0.0 && c.host_ranks > 0));
    } else {
        read_model((const char *)data + 1, bytes - 1, data[0]);
    }
    return 0;
}
