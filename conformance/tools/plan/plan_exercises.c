/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_exercises.c - each answer is what plan counts of a model that is made
 * for the question; only the sixteen bytes of articles are a sum of their own.
 */
#include "tools/plan/plan_exercises.h"

#include "tools/plan/plan_equal.h"
#include "tools/plan/plan_show.h"
#include "tools/plan/prefetch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* M, K, U: what each of the three sends, and an all-reduce in their place. */
static int bytes_on_the_wire(uint64_t elements, uint32_t ranks, uint32_t units,
                             struct fsdp_error *error)
{
    struct plan_bytes fsdp;
    struct plan_bytes ddp;
    int status =
        plan_equal_units(elements, units, ranks, CASE_FULL_SHARD, &fsdp, error);

    if (status == FSDP_OK) {
        status = plan_equal_units(elements, units, ranks, CASE_NO_SHARD, &ddp,
                                  error);
    }
    if (status == FSDP_OK) {
        printf("  %13" PRIu64 " %5u %5u %14" PRIu64 " %14" PRIu64 " %14" PRIu64
               " %14" PRIu64 " %14" PRIu64 " %6.4f %11u\n",
               elements, ranks, units, fsdp.sent[FSDP_ALL_GATHER] / 2,
               fsdp.sent[FSDP_ALL_GATHER] / 2, fsdp.sent[FSDP_REDUCE_SCATTER],
               fsdp.sent_sum, ddp.sent_sum,
               ddp.sent_sum > 0 ? (double)fsdp.sent_sum / (double)ddp.sent_sum
                                : 0.0,
               fsdp.collectives[FSDP_ALL_GATHER] +
                   fsdp.collectives[FSDP_REDUCE_SCATTER]);
        plan_bytes_release(&ddp);
    }
    plan_bytes_release(&fsdp);
    return status;
}

static int exercise_1(struct fsdp_error *error)
{
    static const struct {
        uint64_t elements;
        uint32_t ranks, units;
    } all[] = {{2176, 1, 1},         {2176, 4, 1},
               {7000000000, 8, 1},   {7000000000, 8, 32},
               {7000000000, 64, 32}, {175000000000, 128, 1}};

    printf("Exercise 16.5.1: bytes on the wire, sent by each of K workers; "
           "received is as much\n"
           "  each of (a), (b), (c) is 2 M (K-1)/K bytes of 16 bit; DDP's "
           "all-reduce 4 M (K-1)/K,\n"
           "  which is the book's 2M counted in elements\n"
           "  %13s %5s %5s %14s %14s %14s %14s %14s %6s %11s\n",
           "M", "K", "U", "(a) forward", "(b) backward", "(c) reduce", "FSDP",
           "DDP", "ratio", "collectives");
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        FSDP_TRY(bytes_on_the_wire(all[i].elements, all[i].ranks, all[i].units,
                                   error));
    }
    printf("  as U grows with K fixed the bytes stay, but for padding of fewer "
           "than U K elements;\n  collectives are 3 U\n\n");
    return FSDP_OK;
}

static int exercise_2(struct fsdp_error *error)
{
    static const uint32_t units[] = {0, 2, 1};
    struct plan_model m;
    struct run_case c;
    bool is_record;
    int status = plan_model_open("mlp", &c, &is_record, &m, error);

    printf("Exercise 16.5.2: the wrapping boundary, the miniature at K = 4\n"
           "  units  all-gathers/step  peak full  peak total\n");
    for (size_t i = 0; status == FSDP_OK && i < 3; i++) {
        struct plan_ask ask = plan_ask_for(&m, 4, CASE_FULL_SHARD, CASE_F32);
        struct wrap_units wrapped = {.unit_of_module = NULL};
        struct plan_bytes b = {.units = 0};

        status = plan_units(&m, units[i], &wrapped);
        if (status == FSDP_OK) {
            ask.units = &wrapped.units;
            status = plan_bytes_make(&ask, &b, error);
        }
        if (status == FSDP_OK) {
            printf("  %5u  %16u  %9" PRIu64 "  %10" PRIu64 "\n", b.units,
                   b.collectives[FSDP_ALL_GATHER], b.peak[FSDP_PARAM_FULL] / 4,
                   b.peak_parameters / 4);
        }
        plan_bytes_release(&b);
        wrap_release(&wrapped);
    }
    plan_model_release(&m);
    printf("\n");
    return status;
}

/* The textbook's question has no numbers; these are of models and links that
 * others have published (docs/plan.md). */
static int exercise_3(struct fsdp_error *error)
{
    static const struct {
        const char *what;
        struct prefetch p;
    } all[] = {
        {"8B, 8 H100, 8192 tokens, 400 TFLOPS, 350 GB/s",
         {8e9, 32.2e-6, 4.1e-11, 5e-12}},
        {"175B, 128 A100, 2048 tokens, 200 TFLOPS, 225 GB/s",
         {175e9, 599e-6, 2.05e-11, 8.33e-12}},
        {"8B, a slow network", {8e9, 300e-6, 1e-11, 2e-11}},
    };

    printf(
        "Exercise 16.5.3: when prefetch pays off. A gather of alpha + b m "
        "is hidden behind the\n  compute f m of the unit before it iff it is "
        "no longer: from m* = alpha / (f - b) on\n"
        "  %-50s %10s %10s %9s %12s %12s\n",
        "", "m*", "best m", "forward", "32 units", "simulated");
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        const struct prefetch *const p = &all[i].p;
        double simulated;

        FSDP_TRY(prefetch_simulated(p, 32, &simulated, error));
        printf("  %-50s %10.3g %10.3g %7.4f s %10.4f s %10.4f s\n", all[i].what,
               prefetch_hidden_from(p), prefetch_best(p),
               prefetch_seconds(p, prefetch_best(p)),
               prefetch_seconds(p, p->elements / 32), simulated);
    }
    printf("\n");
    return FSDP_OK;
}

static void size(const char *what, double bytes, const char *formula)
{
    printf("  %-58s %9.2f GB  %s\n", what, bytes / 1e9, formula);
}

/* The seeds' own numbers, 16 bit copies and AdamW; what plan counts of the
 * suite's own float32 stands below them. */
static int named_sizes(struct fsdp_error *error)
{
    const double state = PLAN_STATE;
    struct plan_model m;
    struct run_case c;
    struct plan_bytes b = {.units = 0};
    struct plan_ask ask;
    bool is_record;
    int status = plan_model_open("llama2-13b", &c, &is_record, &m, error);
    double block;

    if (status == FSDP_OK) {
        ask = plan_ask_for(&m, 8, CASE_FULL_SHARD, CASE_F32);
        status = plan_bytes_make(&ask, &b, error);
    }
    block = 2.0 * (PLAN_STATE_PARAMETER) * (double)b.largest;
    printf("Sizes that articles name: %d bytes of state a parameter = %d "
           "parameter + %d gradient + %d master + %d moments\n",
           PLAN_STATE, PLAN_STATE_PARAMETER, PLAN_STATE_GRADIENT,
           PLAN_STATE_MASTER, PLAN_STATE_MOMENTS);
    size("7B: more than 100 GB", state * 7e9, "16 x 7e9");
    size("13B, AdamW: 156 GB of optimizer state", PLAN_STATE_OPTIMIZER * 13e9,
         "12 x 13e9");
    size("13B with parameters and gradients", state * 13e9, "16 x 13e9");
    size("1.3B under DDP on 40 GB: fits", state * 1.3e9, "16 x 1.3e9");
    size("13B, full-shard over 8 x 40 GB, and a block: fits",
         state * 13e9 / 8 + block, "16 x 13e9 / 8 + 4 x block");
    size("13B, shard-grad-op over 8: does not fit",
         PLAN_STATE_PARAMETER * 13e9 +
             (state - PLAN_STATE_PARAMETER) * 13e9 / 8,
         "2 x 13e9 + 14 x 13e9 / 8");
    size("13B, hybrid 2 x 4: does not fit", state * 13e9 / 4, "16 x 13e9 / 4");
    size("Llama 2 13B in float32, full-shard over 8, by the oracle",
         (double)b.peak_sum, "fsdp-cts plan llama2-13b --ranks 8");
    size("  at most", 16.0 * (double)b.elements / 8 + 8.0 * (double)b.largest,
         "16 N / 8 + 4 block + 4 block");
    plan_bytes_release(&b);
    plan_model_release(&m);
    printf("\n");
    return status;
}

int plan_exercises(struct fsdp_error *error)
{
    FSDP_TRY(exercise_1(error));
    FSDP_TRY(exercise_2(error));
    FSDP_TRY(exercise_3(error));
    return named_sizes(error);
}
