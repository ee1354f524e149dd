/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain_device_test.c - the reference device itself: memory, streams, and that
 * it refuses an operator that is not formed as op.h says, without writing.
 */
#include "plain_device.h"

#include "ops_test.h"

/* Every operator of the shapes' table, small; dimensions that fit them all. */
static void open_small(struct trial *t, uint32_t kind)
{
    trial_open(t, kind, 4, 6, 2, 3, 2);
    if (kind == FSDP_OP_GEMM_GRAD) {
        t->op.dim[3] = 2;
    }
}

/* Runs an operator that is wrong in one way: INVALID, and nothing written. */
static void refused(const struct trial *t, const struct fsdp_op *op)
{
    unsigned char before[FSDP_OP_MAX_OUT][2048];

    for (uint32_t o = 0; o < t->op.n_out; o++) {
        assert_true(t->op.out[o].bytes <= sizeof(before[o]));
        memcpy(before[o], t->out[o], t->op.out[o].bytes);
    }
    assert_int_equal(t->device.run(NULL, NULL, op), FSDP_ERR_INVALID);
    for (uint32_t o = 0; o < t->op.n_out; o++) {
        assert_memory_equal(before[o], t->out[o], t->op.out[o].bytes);
    }
}

UNIT_TEST(opens_as_a_host_device)
{
    struct fsdp_device device;

    assert_int_equal(ref_device_open(NULL), FSDP_ERR_INVALID);
    assert_int_equal(ref_device_open(&device), FSDP_OK);
    assert_int_equal(device.size, sizeof(device));
    assert_int_equal(device.place, FSDP_PLACE_HOST);
    assert_string_equal(device.profile, "f32-fma");
    ref_device_close(&device);
    assert_null(device.run);
    ref_device_close(NULL);
}

UNIT_TEST(memory_is_aligned)
{
    static const uint64_t bytes[] = {0, 1, 63, 64, 65, 4097};
    struct fsdp_device device;
    void *p;

    assert_int_equal(ref_device_open(&device), FSDP_OK);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(device.alloc(device.self, bytes[i], &p), FSDP_OK);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 64, 0);
        device.live(device.self, NULL, FSDP_STAGING, 0, p, bytes[i]);
        memset(p, 1, bytes[i]);
        device.dead(device.self, NULL, p);
        device.free(device.self, p);
    }
    device.free(device.self, NULL);
    device.dead(device.self, NULL, NULL);
    assert_int_equal(device.alloc(device.self, UINT64_MAX, &p), FSDP_ERR_NOMEM);
    assert_null(p);
    assert_int_equal(device.alloc(device.self, 1, NULL), FSDP_ERR_INVALID);
}

UNIT_TEST(streams_finish_at_once)
{
    const char from[] = "content";
    char to[sizeof(from)] = "";
    struct fsdp_stream *one;
    struct fsdp_stream *two;
    struct fsdp_device device;
    uint64_t ticket = 0;
    uint64_t next = 0;
    uint64_t before = 0;
    uint64_t behind = 0;

    assert_int_equal(ref_device_open(&device), FSDP_OK);
    assert_int_equal(device.stream_open(NULL, "one", &one), FSDP_OK);
    assert_int_equal(device.stream_open(NULL, "two", &two), FSDP_OK);
    assert_ptr_not_equal(one, two);

    assert_int_equal(device.copy(NULL, one, to, from, sizeof(from)), FSDP_OK);
    assert_string_equal(to, from);
    assert_int_equal(device.copy(NULL, one, NULL, NULL, 0), FSDP_OK);
    assert_int_equal(device.copy(NULL, one, NULL, from, 1), FSDP_ERR_INVALID);
    assert_int_equal(device.mark(NULL, one, &ticket), FSDP_OK);
    assert_true(ticket != 0);
    assert_int_equal(device.mark(NULL, one, &next), FSDP_OK);
    assert_true(next > ticket);
    assert_int_equal(device.mark(NULL, NULL, &next), FSDP_OK);
    assert_true(next != 0);
    assert_int_equal(device.stamp(NULL, one, &before), FSDP_OK);
    assert_int_equal(device.stamp(NULL, NULL, &behind), FSDP_OK);
    assert_true(before > 0 && behind >= before);
    assert_int_equal(device.wait(NULL, two, one, ticket, "one->two"), FSDP_OK);
    assert_int_equal(device.wait(NULL, NULL, one, 0, "one->host"), FSDP_OK);
    assert_int_equal(device.sync(NULL, two), FSDP_OK);
    assert_int_equal(device.sync(NULL, NULL), FSDP_OK);

    device.stream_close(NULL, one);
    device.stream_close(NULL, two);
    device.stream_close(NULL, NULL);
}

UNIT_TEST(kinds_that_are_missing_are_unsupported)
{
    struct trial t;

    open_small(&t, FSDP_OP_RELU);
    t.op.kind = FSDP_OP_NORM_SUM;
    assert_int_equal(trial_run(&t), FSDP_ERR_UNSUPPORTED);
    t.op.kind = FSDP_N_OPS;
    assert_int_equal(trial_run(&t), FSDP_ERR_UNSUPPORTED);
    t.op.kind = UINT32_MAX;
    assert_int_equal(trial_run(&t), FSDP_ERR_UNSUPPORTED);
    assert_int_equal(t.device.run(NULL, NULL, NULL), FSDP_ERR_INVALID);
    trial_close(&t);
}

/* Mistakes that any operator refuses, whatever its kind. */
static void refuses_bad_form(const struct trial *t)
{
    struct fsdp_op op = t->op;

    op.size--;
    refused(t, &op);
    op = t->op;
    op.flags = op.kind == FSDP_OP_GEMM ? 2 : 1;
    refused(t, &op);
    op = t->op;
    op.n_in++;
    refused(t, &op);
    op = t->op;
    op.n_out++;
    refused(t, &op);
    op = t->op;
    op.n_out--;
    refused(t, &op);
    op = t->op;
    op.dim[0] = UINT64_MAX / 4 + 5; /* bytes would wrap to those of 4 */
    refused(t, &op);
}

static void refuses_bad_ranges(const struct trial *t)
{
    struct fsdp_op op = t->op;

    for (uint32_t i = 0; i < op.n_in; i++) {
        op.in[i].bytes += 4;
        refused(t, &op);
        op.in[i].bytes -= 8;
        refused(t, &op);
        op.in[i].bytes += 4;
        op.in[i].p = NULL;
        refused(t, &op);
        op = t->op;
    }
    for (uint32_t o = 0; o < op.n_out; o++) {
        op.out[o].bytes += 4;
        refused(t, &op);
        op.out[o].bytes -= 8;
        refused(t, &op);
        op.out[o].bytes += 4;
        op.out[o].p = NULL;
        refused(t, &op);
        op = t->op;
        for (uint32_t i = 0; i < op.n_in; i++) {
            op.out[o].p = t->in[i] + 1; /* overlaps, and is not the same */
            refused(t, &op);
        }
        op = t->op;
        if (o > 0) {
            op.out[o].p = op.out[0].p;
            refused(t, &op);
            op = t->op;
        }
    }
}

UNIT_TEST(every_operator_is_checked)
{
    for (uint32_t kind = 0; kind < FSDP_N_OPS; kind++) {
        struct trial t;

        if (!trial_shapes[kind]) {
            continue;
        }
        open_small(&t, kind);
        refuses_bad_form(&t);
        refuses_bad_ranges(&t);
        assert_int_equal(trial_run(&t), FSDP_OK);
        trial_close(&t);
    }
}

UNIT_TEST(grains_must_divide_the_rows)
{
    static const struct {
        uint32_t kind, dim;
    } cases[] = {{FSDP_OP_GEMM_GRAD, 3},
                 {FSDP_OP_COLUMN_SUM, 2},
                 {FSDP_OP_NORM_GRAD, 2},
                 {FSDP_OP_EMBEDDING_GRAD, 4}};
    static const uint64_t wrong[] = {0, 3, 65, 130, UINT64_MAX};

    for (int i = 0; i < 4; i++) {
        struct trial t;

        /* 130 rows: GEMM_GRAD has them in dim[2], the others in dim[0]. */
        trial_open(&t, cases[i].kind, i == 0 ? 1 : 130, 1, i == 0 ? 130 : 2, 3,
                   2);
        for (int w = 0; w < 5; w++) {
            t.op.dim[cases[i].dim] = wrong[w];
            refused(&t, &t.op);
        }
        t.op.dim[cases[i].dim] = 26;
        assert_int_equal(trial_run(&t), FSDP_OK);
        trial_close(&t);
    }
}

UNIT_TEST(ids_must_be_in_range)
{
    static const struct {
        uint32_t kind, in;
        int32_t range;
    } cases[] = {{FSDP_OP_EMBEDDING, 0, 3},
                 {FSDP_OP_EMBEDDING_GRAD, 0, 3},
                 {FSDP_OP_CROSS_ENTROPY, 1, 6}};

    for (int i = 0; i < 3; i++) {
        const int32_t wrong[] = {-1, INT32_MIN, cases[i].range, INT32_MAX};
        struct trial t;
        int32_t *id;

        open_small(&t, cases[i].kind);
        id = (int32_t *)(void *)t.in[cases[i].in];
        for (int w = 0; w < 4; w++) {
            id[3] = wrong[w];
            refused(&t, &t.op);
        }
        id[3] = cases[i].range - 1;
        assert_int_equal(trial_run(&t), FSDP_OK);
        trial_close(&t);
    }
}

/* An output may lie on an input where op.h says so, and nowhere else. */
UNIT_TEST(outputs_lie_on_inputs_where_allowed)
{
    static const struct {
        uint32_t kind, out, in;
        int status;
    } cases[] = {{FSDP_OP_ADD, 0, 0, FSDP_OK},
                 {FSDP_OP_ADD, 0, 1, FSDP_OK},
                 {FSDP_OP_BIAS, 0, 0, FSDP_OK},
                 {FSDP_OP_RELU, 0, 0, FSDP_OK},
                 {FSDP_OP_RELU_BACKWARD, 0, 1, FSDP_OK},
                 {FSDP_OP_RELU_BACKWARD, 0, 0, FSDP_ERR_INVALID},
                 {FSDP_OP_GELU, 0, 0, FSDP_ERR_INVALID},
                 {FSDP_OP_GELU_BACKWARD, 0, 1, FSDP_OK},
                 {FSDP_OP_CROSS_ENTROPY, 1, 0, FSDP_OK},
                 {FSDP_OP_MSE, 1, 0, FSDP_ERR_INVALID},
                 {FSDP_OP_NORM, 0, 0, FSDP_ERR_INVALID}};

    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fsdp_op op;
        struct trial t;

        open_small(&t, cases[i].kind);
        op = t.op;
        op.out[cases[i].out].p = t.in[cases[i].in];
        assert_int_equal(t.device.run(NULL, NULL, &op), cases[i].status);
        trial_close(&t);
    }
}

/* An operand that is updated in place is read and written at one address. */
UNIT_TEST(updates_are_in_place)
{
    static const uint32_t kinds[] = {FSDP_OP_SCALE, FSDP_OP_SGD,
                                     FSDP_OP_MOMENTUM, FSDP_OP_ADAMW};
    float elsewhere[4];

    for (int i = 0; i < 4; i++) {
        struct trial t;

        open_small(&t, kinds[i]);
        for (uint32_t o = 0; o < t.op.n_out; o++) {
            struct fsdp_op op = t.op;

            op.out[o].p = elsewhere;
            refused(&t, &op);
        }
        trial_close(&t);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_as_a_host_device),
        cmocka_unit_test(memory_is_aligned),
        cmocka_unit_test(streams_finish_at_once),
        cmocka_unit_test(kinds_that_are_missing_are_unsupported),
        cmocka_unit_test(every_operator_is_checked),
        cmocka_unit_test(grains_must_divide_the_rows),
        cmocka_unit_test(ids_must_be_in_range),
        cmocka_unit_test(outputs_lie_on_inputs_where_allowed),
        cmocka_unit_test(updates_are_in_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
