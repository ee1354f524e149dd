/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thaw_allocation_test.c - a freeze or thaw for which there is no memory
 * changes nothing: each of its allocations fails once, then the call is made
 * again, and the run is, bit for bit, the run in which none failed.
 */
#include "run/play/fault_testing.h"
#include "run/play/playing_testing.h"
#include "testing/unit_testing.h"

#include <string.h>

enum {
    MOST_LOSSES = 64,
    MOST_CALLS = 64
};

static const struct fsdp_engine *real;
static uint32_t kind;          /* of the allocations that fail */
static uint32_t in_calls, met; /* faults: in one of the calls, in all */
static _Thread_local const struct fsdp_env *given;

/* For each call, the allocation from which on memory is the recorder's, not the
 * engine's, and does not fail any more. A run in which that failed is spoilt,
 * and another one is made. */
static uint64_t limit[MOST_CALLS];
static uint32_t n_calls;
static bool spoilt;

static int shard_noting(const struct fsdp_env *env,
                        const struct fsdp_model *model,
                        const struct fsdp_units *units,
                        const struct fsdp_options *options,
                        struct fsdp_sharded **out)
{
    given = env;
    return real->shard(env, model, units, options, out);
}

/* Has allocation nth of a call fail. */
static void fail_at(uint64_t nth)
{
    if (n_calls < MOST_CALLS && (limit[n_calls] == 0 || nth < limit[n_calls])) {
        fault_set(kind, 0, nth);
    }
}

/* Whether the call is to be made again, because the engine met a fault. */
static bool again(int *status, uint64_t nth)
{
    const bool happened = fault_happened();

    fault_set(FAULT_NONE, 0, 0);
    if (happened && *status == FSDP_ERR_NOMEM) {
        met++;
        *given->error = (struct fsdp_error){0};
        return true;
    }
    if (happened && *status == FSDP_OK) {
        spoilt = true;
        limit[n_calls] = nth;
    }
    n_calls++;
    return false;
}

/* Faults are on rank 0 alone: both calls are local. */
static int thaw_with_faults(struct fsdp_sharded *s, uint32_t p, uint32_t on)
{
    uint64_t nth = 0;
    int status;

    if (given->rank != 0) {
        return real->set_requires_grad(s, p, on);
    }
    do {
        fail_at(++nth);
        status = real->set_requires_grad(s, p, on);
    } while (again(&status, nth));
    in_calls += nth > 1;
    return status;
}

static int begin_with_faults(struct fsdp_sharded *s, uint32_t point,
                             uint32_t index)
{
    uint64_t nth = 0;
    int status;

    if (given->rank != 0 || point != FSDP_BEGIN) {
        return real->at(s, point, index);
    }
    do {
        fail_at(++nth);
        status = real->at(s, point, index);
    } while (again(&status, nth));
    return status;
}

/* ---- A run -------------------------------------------------------------- */

struct shown {
    uint32_t n_losses;
    float loss[MOST_LOSSES];
};

/* The losses of a script that freezes and thaws, under this id. */
static struct shown play(const struct fsdp_engine *engine, const char *id,
                         uint32_t what)
{
    struct shown s = {.n_losses = 0};
    struct playing p;
    struct record r;

    playing_open(&p, id, NULL, engine);
    real = engine;
    kind = what;
    in_calls = met = n_calls = 0;
    spoilt = false;
    fault_engine(&p.engine);
    p.engine.shard = shard_noting;
    if (what != FAULT_NONE) {
        p.engine.set_requires_grad = thaw_with_faults;
        p.engine.at = begin_with_faults;
    }
    p.begin = fault_play;
    p.end = fault_play_nobody;
    playing_play(&p);
    for (uint32_t k = 0; k < p.c.ranks; k++) {
        if (p.ends[k].status != FSDP_OK && !spoilt) {
            fail_msg("rank %u: %d, %s: %s", k, p.ends[k].status,
                     p.ends[k].error.where, p.ends[k].error.message);
        }
    }
    if (!spoilt) {
        playing_read(&p, &r);
        assert_in_range(r.rank[0].n_losses, 2, MOST_LOSSES);
        s.n_losses = r.rank[0].n_losses;
        memcpy(s.loss, r.rank[0].loss, s.n_losses * sizeof(*s.loss));
        record_release(&r);
    }
    playing_close(&p);
    return s;
}

UNIT_TEST(without_memory_nothing_changes)
{
    /* Cases with both layouts and with optimizer states of two kinds; in one
     * the engine runs ahead. */
    static const char *const id[] = {
        "mlp.odd.natural.full-shard.k3.flat.layer.rank.s.adamw.thaw."
        "frozen-alternate",
        "mlp.odd.natural.full-shard.k2.per-parameter.pair.ring.s.momentum.thaw."
        "frozen-alternate",
        "mlp.odd.natural.full-shard.k3.flat.layer.rank.s.adamw.thaw."
        "frozen-alternate.pf1.pb1.rif1"};
    static const uint32_t what[] = {FAULT_MEMORY, FAULT_DEVICE};
    const struct fsdp_engine *const engine[] = {fsdp_ref_engine(),
                                                fsdp_impl_engine()};

    assert_true(fault_is_wrapped());
    for (uint32_t e = 0; e < 2; e++) {
        for (uint32_t i = 0; i < (e == 0 ? 2u : 3u); i++) {
            struct shown plain = play(engine[e], id[i], FAULT_NONE);

            for (uint32_t k = 0; k < 2; k++) {
                struct shown with;

                memset(limit, 0, sizeof(limit));
                do {
                    with = play(engine[e], id[i], what[k]);
                } while (spoilt);
                assert_true(in_calls > 0 && met >= in_calls);
                print_message("%s: %u faults\n", engine[e]->name, met);
                assert_int_equal(with.n_losses, plain.n_losses);
                assert_memory_equal(with.loss, plain.loss,
                                    plain.n_losses * sizeof(*plain.loss));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_nothing_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
