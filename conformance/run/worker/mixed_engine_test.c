/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixed_engine_test.c - trains a small model under policies of mixed precision,
 * and compares it to the bit with a loop by hand (mixed_engine_testing.h) that
 * knows neither shards nor units: what is lent, what is stored after each step,
 * what goes over the wire, and how much is live.
 */
#include "run/worker/engine_load.h"
#include "run/worker/mixed_engine_testing.h"
#include "run/worker/mixed_watch_testing.h"
#include "testing/unit_testing.h"
#include "world/world.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    F32 = FSDP_DTYPE_F32,
    BF16 = FSDP_DTYPE_BF16,
    F16 = FSDP_DTYPE_F16,
    FLAT = FSDP_LAYOUT_FLAT,
    ROWS = FSDP_LAYOUT_PER_PARAMETER,
};

/* ---- A pass ------------------------------------------------------------ */

struct run {
    const struct mixed_case *c;
    const struct fsdp_engine *engine;
    struct fsdp_env *env;
    struct fsdp_sharded *s;
    struct mixed_truth *truth;
    uint32_t step, microbatch;
};

#define CHECK(condition)                           \
    do {                                           \
        if (!(condition)) {                        \
            return wrong(r, __LINE__, #condition); \
        }                                          \
    } while (0)

static int wrong(const struct run *r, int line, const char *what)
{
    struct fsdp_error *e = r->env->error;

    if (e->status == FSDP_OK) {
        e->status = FSDP_ERR_INTERNAL;
        snprintf(e->where, sizeof(e->where), "line %d", line);
        snprintf(e->message, sizeof(e->message), "rank %u, step %u: %s",
                 r->env->rank, r->step, what);
    }
    return FSDP_ERR_INTERNAL;
}

/* Copies between a lent tensor, on any device, and the host. */
static int copy(const struct run *r, void *to, const void *from, uint64_t bytes)
{
    const struct fsdp_device *d = r->env->device;

    FSDP_TRY(d->sync(d->self, r->env->compute));
    return d->copy(d->self, NULL, to, from, bytes);
}

/* Checks that each lent parameter is the master, rounded once. */
static int read_parameters(const struct run *r, uint32_t module)
{
    const struct mixed_policy *policy = &r->c->policy[module];

    for (uint32_t p = 0; p < MIXED_PARAMETERS; p++) {
        struct fsdp_tensor t;
        float lent[MIXED_MOST];

        if (mixed_module[p] != module) {
            continue;
        }
        FSDP_TRY(r->engine->param(r->s, p, &t));
        CHECK(t.dtype == policy->param);
        FSDP_TRY(
            copy(r, lent, t.data, mixed_numel[p] * fsdp_dtype_bytes(t.dtype)));
        for (uint32_t i = 0; i < mixed_numel[p]; i++) {
            float want = fsdp_round(policy->param, r->truth->weight[p][i]);
            CHECK(fsdp_load(t.dtype, lent, i) == want);
        }
    }
    return FSDP_OK;
}

static int write_gradients(const struct run *r, uint32_t module)
{
    const struct mixed_policy *policy = &r->c->policy[module];

    for (uint32_t p = 0; p < MIXED_PARAMETERS; p++) {
        struct fsdp_tensor t;
        float fresh[MIXED_MOST];

        if (mixed_module[p] != module || !mixed_has_gradient(p, r->env->rank)) {
            continue;
        }
        FSDP_TRY(r->engine->grad(r->s, p, &t));
        CHECK(t.dtype == policy->grad);
        for (uint32_t i = 0; i < mixed_numel[p]; i++) {
            const struct mixed_when when = {r->step, r->microbatch};

            fsdp_store(t.dtype, fresh, i,
                       mixed_gradient(r->c, &when, r->env->rank, p, i));
        }
        FSDP_TRY(
            copy(r, t.data, fresh, mixed_numel[p] * fsdp_dtype_bytes(t.dtype)));
    }
    return FSDP_OK;
}

static int pass(const struct run *r)
{
    const struct fsdp_sequence *q = mixed_model.sequence[0];

    FSDP_TRY(
        r->engine->set_gradient_sync(r->s, r->c->sync >> r->microbatch & 1));
    FSDP_TRY(r->engine->at(r->s, FSDP_BEGIN, 0));
    for (uint32_t i = 0; i < q->n; i++) {
        if (q->point[i] == FSDP_POST_BACKWARD) {
            FSDP_TRY(write_gradients(r, q->module[i]));
        }
        FSDP_TRY(r->engine->at(r->s, q->point[i], q->module[i]));
        if (q->point[i] == FSDP_PRE_FORWARD ||
            q->point[i] == FSDP_PRE_BACKWARD) {
            FSDP_TRY(read_parameters(r, q->module[i]));
        }
    }
    return r->engine->at(r->s, FSDP_END, 0);
}

/* ---- Steps ------------------------------------------------------------- */

struct compared {
    const struct run *run;
    bool same;
};

static bool is_same(const struct run *r, const void *there, const float *want,
                    uint64_t n)
{
    float x[MIXED_MOST];

    return there && copy(r, x, there, n * sizeof(*x)) == FSDP_OK &&
           memcmp(x, want, n * sizeof(*x)) == 0;
}

static void compare(void *context, const struct fsdp_piece *piece)
{
    struct compared *x = context;
    const struct mixed_truth *t = x->run->truth;
    uint32_t p = piece->parameter;

    x->same =
        x->same &&
        is_same(x->run, piece->value, t->weight[p] + piece->first, piece->n) &&
        is_same(x->run, piece->grad, t->gradient[p] + piece->first, piece->n);
}

/* Checks all parameters, in float32, whatever they are computed with. */
static int read_all(const struct run *r)
{
    FSDP_TRY(r->engine->unshard_all(r->s));
    for (uint32_t p = 0; p < MIXED_PARAMETERS; p++) {
        struct fsdp_tensor t;

        FSDP_TRY(r->engine->param(r->s, p, &t));
        CHECK(t.dtype == F32);
        CHECK(is_same(r, t.data, r->truth->weight[p], mixed_numel[p]));
    }
    return r->engine->reshard_all(r->s);
}

/* Clips with a norm that cuts nothing. If an infinity is an error, nothing has
 * changed afterwards. */
static int clip(const struct run *r, float inverse_scale)
{
    struct fsdp_clip how = {.size = sizeof(how),
                            .max_norm = INFINITY,
                            .p = 2.0f,
                            .error_if_nonfinite = 1,
                            .inverse_scale = inverse_scale};
    bool overflows = r->c->overflows && r->step == 1;
    float norm = -1.0f;
    int status = r->engine->clip_grad_norm(r->s, &how, &norm);

    if (!overflows) {
        CHECK(status == FSDP_OK && isfinite(norm));
        return FSDP_OK;
    }
    CHECK(status == FSDP_ERR_INVALID);
    *r->env->error = (struct fsdp_error){.status = FSDP_OK};
    how.error_if_nonfinite = 0;
    FSDP_TRY(r->engine->clip_grad_norm(r->s, &how, &norm));
    CHECK(!isfinite(norm));
    return FSDP_OK;
}

static int step(struct run *r)
{
    const float lr[MIXED_GROUPS] = {MIXED_LR, MIXED_LR, MIXED_LR};
    struct fsdp_step how = {
        .size = sizeof(how), .lr = lr, .n_groups = MIXED_GROUPS};
    struct compared x = {r, true};
    bool finite;

    for (r->microbatch = 0; r->microbatch < r->c->microbatches;
         r->microbatch++) {
        FSDP_TRY(pass(r));
    }
    if (r->c->scale != 0.0f) {
        how.inverse_scale = 1.0f / r->c->scale;
    }
    if (r->c->clips) {
        FSDP_TRY(clip(r, how.inverse_scale));
        how.inverse_scale = 1.0f;
    }
    FSDP_TRY(r->engine->step(r->s, &how));
    finite = mixed_truth_step(r->truth, r->c, r->step);
    CHECK(finite == (r->step != 1 || !r->c->overflows));
    CHECK(how.found_inf == (finite ? 0 : 1));
    FSDP_TRY(r->engine->pieces(r->s, compare, &x));
    CHECK(x.same);
    return r->engine->zero_grad(r->s);
}

static int train(struct run *r)
{
    uint32_t shards = r->c->extent[1];
    uint64_t a_pass = shards > 1 ? 2 : 0; /* of each unit */

    mixed_truth_make(r->truth);
    for (r->step = 0; r->step < MIXED_STEPS; r->step++) {
        FSDP_TRY(step(r));
    }
    CHECK(!mixed_seen()->wrong_wire);
    a_pass *= MIXED_UNITS * MIXED_STEPS * r->c->microbatches;
    CHECK(mixed_seen()->collectives >= a_pass);
    if (r->c->strict) {
        for (uint32_t kind = 0; kind < FSDP_N_KINDS; kind++) {
            uint64_t want = mixed_peak(r->c, r->env->rank, kind);
            CHECK(want == MIXED_ANY || mixed_seen()->peak[kind] == want);
        }
    }
    return read_all(r);
}

static const struct fsdp_engine *under_test;
/* Only each so many-th case is played, as a plug-in may be slow. The stride has
 * no factor in common with the lengths of the lists that a family goes through,
 * so that every policy, extent, layout and option still occurs. */
static struct {
    uint32_t policies, others;
} stride = {1, 1};

static bool claims(const char *what)
{
    for (const char *const *claim = under_test->claims; *claim; claim++) {
        if (strcmp(*claim, what) == 0) {
            return true;
        }
    }
    return false;
}

static int body(void *context, struct world_rank *rank)
{
    const struct mixed_case *c = context;
    const struct fsdp_engine *engine = under_test;
    static const char *const dims[] = {"replicate", "shard"};
    const struct fsdp_mesh mesh = {sizeof(mesh), 2, dims, c->extent};
    struct mixed_options o;
    struct mixed_truth truth;
    struct fsdp_env env = {.size = sizeof(env),
                           .rank = rank->rank,
                           .world = rank->world,
                           .mesh = &mesh,
                           .comm = &rank->comm,
                           .error = rank->error,
                           .exchange = rank->exchange,
                           .exchange_self = rank->exchange_self};
    struct run r = {.c = c, .engine = engine, .env = &env, .truth = &truth};
    int status;

    mixed_options_make(c, &o);
    FSDP_TRY(engine->open(&env));
    FSDP_TRY(
        env.device->stream_open(env.device->self, "compute", &env.compute));
    mixed_watch(&env, c);
    status = engine->shard(&env, &mixed_model, &o.units, &o.options, &r.s);
    if (status == FSDP_OK) {
        status = train(&r);
    }
    engine->destroy(r.s);
    mixed_unwatch(&env);
    env.device->stream_close(env.device->self, env.compute);
    engine->close(&env);
    return status;
}

/* ---- Cases ------------------------------------------------------------- */

static const struct mixed_policy policies[] = {
    /* param, grad, accumulate, reduce, sum */
    {F32, F32, F32, F32, F32},      {BF16, BF16, F32, F32, F32},
    {BF16, BF16, BF16, BF16, BF16}, {BF16, BF16, BF16, BF16, F32},
    {F32, F32, F32, BF16, BF16},    {BF16, BF16, BF16, F32, F32},
    {F16, F16, F16, F16, F16},      {F16, F16, F32, F16, F32},
    {F16, F32, BF16, F32, F32},     {BF16, F16, F32, BF16, F32},
};

enum {
    N_POLICIES = sizeof(policies) / sizeof(policies[0])
};

static void train_case(const struct mixed_case *c)
{
    struct world_result result[8];
    struct fsdp_error error = {.status = FSDP_OK};
    static const char *const dims[] = {"replicate", "shard"};
    const struct fsdp_mesh mesh = {sizeof(mesh), 2, dims, c->extent};
    struct mixed_case copy = *c;

    copy.strict = c->strict || !claims("prefetch");

    assert_int_equal(
        world_run(WORLD_THREADS, &mesh, 20000, body, &copy, result, &error),
        FSDP_OK);
    for (uint32_t i = 0; i < c->extent[0] * c->extent[1]; i++) {
        if (result[i].status != FSDP_OK &&
            result[i].status != FSDP_ERR_ABORTED) {
            fail_msg("%u x %u, layout %u, sync %u, dtypes %u %u %u %u %u: "
                     "status %d at %s: %s",
                     c->extent[0], c->extent[1], c->layout, c->sync,
                     c->policy[0].param, c->policy[0].grad,
                     c->policy[0].accumulate, c->policy[0].reduce,
                     c->policy[0].sum, result[i].status, result[i].error.where,
                     result[i].error.message);
        }
    }
}

UNIT_TEST(every_policy_trains_to_the_bit)
{
    static const uint32_t extents[][2] = {
        {1, 1}, {1, 2}, {1, 3}, {2, 1}, {2, 2}};

    for (uint32_t k = 0; k < N_POLICIES * 5 * 2 * 3; k += stride.policies) {
        uint32_t i = k / 30;
        struct mixed_case c = {
            .extent = {extents[k % 5][0], extents[k % 5][1]},
            .layout = k / 5 % 2 == 0 ? FLAT : ROWS,
            .microbatches = 1 + k / 10 % 3,
            .sync = (uint32_t[]){1, 3, 4}[k / 10 % 3],
            .strict = k % 3 != 0,
            .policy = {policies[i], policies[i], policies[i]}};

        train_case(&c);
    }
}

UNIT_TEST(units_have_their_own)
{
    for (uint32_t k = 0; k < 8; k++) {
        struct mixed_case c = {
            .extent = {1 + k / 4, 2},
            .layout = k % 2 == 0 ? FLAT : ROWS,
            .microbatches = 2,
            .sync = 2,
            .strict = k / 2 % 2 == 0,
            .own = true,
            .policy = {policies[0], policies[2], policies[7]}};

        train_case(&c);
    }
}

/* A step that finds an infinity changes nothing, on no rank, and the step after
 * it is the one that it would have been. */
UNIT_TEST(what_is_not_finite_is_skipped)
{
    static const float scales[] = {1.0f, 256.0f};

    if (!claims("loss-scale")) {
        skip();
    }
    for (uint32_t k = 0; k < 32; k += stride.others) {
        const struct mixed_policy *policy = &policies[k % 2 == 0 ? 0 : 6];
        struct mixed_case c = {.extent = {1 + k / 2 % 2, 1 + k / 4 % 2},
                               .layout = k / 8 % 2 == 0 ? FLAT : ROWS,
                               .microbatches = 1,
                               .sync = 1,
                               .scale = scales[k / 16],
                               .overflows = k % 3 != 0,
                               .clips = k / 2 % 3 == 0,
                               .policy = {*policy, *policy, *policy}};

        train_case(&c);
    }
}

/* Gradients are divided before the fold, in the accumulate dtype, and after it;
 * 3 / 7 is rounded once. */
UNIT_TEST(gradients_are_divided_twice)
{
    static const float factors[][2] = {{2, 0}, {4, 8}, {3, 7}};

    if (!claims("unit-factors")) {
        skip();
    }
    for (uint32_t k = 0; k < 24; k += stride.others) {
        const struct mixed_policy *policy = &policies[k / 3 % 2 == 0 ? 0 : 2];
        struct mixed_case c = {.extent = {1 + k / 6 % 2, 2},
                               .layout = k / 12 == 0 ? FLAT : ROWS,
                               .microbatches = 3,
                               .sync = 5,
                               .predivide = factors[k % 3][0],
                               .divide = factors[k % 3][1],
                               .policy = {*policy, *policy, *policy}};

        train_case(&c);
    }
}

/* Groups have their own betas, eps and momentum; they cut through units, and
 * one is empty. */
UNIT_TEST(groups_have_their_own_numbers)
{
    if (!claims("groups-betas")) {
        skip();
    }
    for (uint32_t k = 0; k < 16; k += stride.others) {
        struct mixed_case c = {
            .extent = {1 + k / 2 % 2, 1 + k / 4 % 2},
            .layout = k / 8 == 0 ? FLAT : ROWS,
            .microbatches = 1,
            .sync = 1,
            .optimizer =
                k % 2 == 0 ? FSDP_OPTIMIZER_MOMENTUM : FSDP_OPTIMIZER_ADAMW,
            .policy = {policies[0], policies[1], policies[2]},
            .own = true};

        train_case(&c);
    }
}

static int try_engine(const char *name)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_policy_trains_to_the_bit),
        cmocka_unit_test(units_have_their_own),
        cmocka_unit_test(what_is_not_finite_is_skipped),
        cmocka_unit_test(gradients_are_divided_twice),
        cmocka_unit_test(groups_have_their_own_numbers),
    };
    struct fsdp_error error = {.status = FSDP_OK};

    if (engine_load(name, &under_test, &error) != FSDP_OK) {
        print_error("%s: %s\n", name, error.message);
        return 1;
    }
    return cmocka_run_group_tests_name(name, tests, NULL, NULL) != 0;
}

/* Arguments: names or plug-ins of engines; without any, those of the suite. */
int main(int argc, char **argv)
{
    int failed = 0;

    if (argc > 1) {
        stride.policies = 7;
        stride.others = 5;
    }
    for (int i = 1; i < argc; i++) {
        failed += try_engine(argv[i]);
    }
    if (argc == 1) {
        failed = try_engine("impl") + try_engine("ref");
    }
    return failed != 0;
}
