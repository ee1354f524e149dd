/* SPDX-License-Identifier: Apache-2.0 */
/*
 * between_passes_test.c - effects of calls between passes that no case makes. A
 * step without a gradient is no step: the products of AdamW's betas are over
 * the steps that a parameter took. Gradients outlive a step. Between
 * unshard_all and reshard_all parameters are read, and nothing else is done.
 */
#include "run/play/playing_testing.h"
#include "testing/unit_testing.h"

#include <string.h>

enum {
    STEPS = 4
};

static const struct fsdp_engine *real;
static const float lr[1] = {0.01f};

static int step_without_gradients(struct fsdp_sharded *s)
{
    struct fsdp_step step = {.size = sizeof(step), .n_groups = 1, .lr = lr};

    FSDP_TRY(real->zero_grad(s));
    return real->step(s, &step);
}

static int step_twice(struct fsdp_sharded *s, struct fsdp_step *step)
{
    FSDP_TRY(real->step(s, step));
    return real->step(s, step);
}

static void ignore(void *context, const struct fsdp_piece *piece)
{
    (void)context;
    (void)piece;
}

/* INTERNAL: something was not refused that should be, or the reverse. */
static int ask_while_unsharded(struct fsdp_sharded *s)
{
    const struct fsdp_save save = {.size = sizeof(save), .directory = "/"};
    const struct fsdp_clip clip = {
        .size = sizeof(clip), .max_norm = 1.0f, .p = 2.0f};
    struct fsdp_step step = {.size = sizeof(step), .n_groups = 1, .lr = lr};
    struct fsdp_tensor t;
    float norm;
    bool good;

    FSDP_TRY(real->zero_grad(s));
    good = real->reshard_all(s) == FSDP_ERR_INVALID;
    FSDP_TRY(real->unshard_all(s));
    good = good && real->param(s, 0, &t) == FSDP_OK &&
           real->grad(s, 0, &t) == FSDP_ERR_INVALID &&
           real->at(s, FSDP_BEGIN, 0) == FSDP_ERR_INVALID &&
           real->step(s, &step) == FSDP_ERR_INVALID &&
           real->zero_grad(s) == FSDP_ERR_INVALID &&
           real->clip_grad_norm(s, &clip, &norm) == FSDP_ERR_INVALID &&
           real->pieces(s, ignore, NULL) == FSDP_ERR_INVALID &&
           real->unshard_all(s) == FSDP_ERR_INVALID &&
           real->save_begin(s, &save) == FSDP_ERR_INVALID &&
           real->load(s, "/") == FSDP_ERR_INVALID;
    FSDP_TRY(real->reshard_all(s));
    return good && real->reshard_all(s) == FSDP_ERR_INVALID ? FSDP_OK
                                                            : FSDP_ERR_INTERNAL;
}

/* The losses of rank 0. */
struct shown {
    float loss[STEPS];
};

/* Functions in the place of the engine's own, if not NULL. */
struct changed {
    int (*zero_grad)(struct fsdp_sharded *s);
    int (*step)(struct fsdp_sharded *s, struct fsdp_step *step);
};

/* The losses of an engine with these functions. */
static struct shown train(const struct fsdp_engine *engine,
                          struct changed changed)
{
    struct playing p;
    struct record r;
    struct shown s;

    playing_open(&p,
                 "mlp.odd.natural.full-shard.k2.flat.layer.rank.s."
                 "adamw",
                 NULL, engine);
    real = engine;
    if (changed.zero_grad) {
        p.engine.zero_grad = changed.zero_grad;
    }
    if (changed.step) {
        p.engine.step = changed.step;
    }
    playing_play(&p);
    assert_int_equal(p.ends[0].status, FSDP_OK);
    playing_read(&p, &r);
    assert_int_equal(r.rank[0].n_losses, STEPS);
    memcpy(s.loss, r.rank[0].loss, sizeof(s.loss));
    record_release(&r);
    playing_close(&p);
    return s;
}

static void assert_same(const struct shown *a, const struct shown *b)
{
    assert_memory_equal(a->loss, b->loss, sizeof(a->loss));
}

UNIT_TEST(a_step_without_gradients_is_none)
{
    const struct fsdp_engine *const engine[] = {
        fsdp_ref_engine(), fsdp_impl_engine(), fsdp_unsharded_engine()};

    for (uint32_t i = 0; i < 3; i++) {
        struct shown with = train(
            engine[i], (struct changed){.zero_grad = step_without_gradients});
        struct shown without = train(engine[i], (struct changed){0});

        assert_same(&with, &without);
        assert_true(with.loss[STEPS - 1] != with.loss[0]);
    }
}

UNIT_TEST(gradients_outlive_a_step)
{
    const struct changed twice = {.step = step_twice};
    struct shown once = train(fsdp_ref_engine(), (struct changed){0});
    struct shown ref = train(fsdp_ref_engine(), twice);
    struct shown impl = train(fsdp_impl_engine(), twice);
    struct shown unsharded = train(fsdp_unsharded_engine(), twice);

    assert_same(&ref, &unsharded);
    assert_same(&impl, &unsharded);
    assert_true(ref.loss[1] != once.loss[1]);
}

UNIT_TEST(only_reading_while_all_is_unsharded)
{
    const struct changed asks = {.zero_grad = ask_while_unsharded};
    struct shown plain = train(fsdp_ref_engine(), (struct changed){0});
    struct shown ref = train(fsdp_ref_engine(), asks);
    struct shown impl = train(fsdp_impl_engine(), asks);

    assert_same(&ref, &plain);
    assert_same(&impl, &plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_without_gradients_is_none),
        cmocka_unit_test(gradients_outlive_a_step),
        cmocka_unit_test(only_reading_while_all_is_unsharded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
