/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter_refusal_test.c - a range that leaves its allocation is refused, one
 * that ends with it is not, and the words say which range it was and by how
 * much.
 */
#include "run/witness/meter.h"
#include "run/witness/meter_refusal.h"
#include "testing/unit_testing.h"

#include <string.h>

/* Two allocations, the second right behind the first. */
static unsigned char arena[512];

struct bench {
    uint32_t extent[2];
    struct fsdp_mesh mesh;
    struct fsdp_error error;
    struct fsdp_env env;
    struct meter_block block[2];
    struct meter meter;
};

static void make(struct bench *b)
{
    *b = (struct bench){.extent = {1, 4}};
    b->mesh = (struct fsdp_mesh){sizeof(b->mesh), 2, NULL, b->extent};
    b->env = (struct fsdp_env){.size = sizeof(b->env),
                               .rank = 3,
                               .world = 4,
                               .mesh = &b->mesh,
                               .error = &b->error};
    b->block[0] = (struct meter_block){arena, 256, false};
    b->block[1] = (struct meter_block){arena + 256, 128, true};
    b->meter.env = &b->env;
    b->meter.block = b->block;
    b->meter.n_blocks = 2;
}

static void said(struct bench *b, const char *where, const char *message)
{
    assert_int_equal(b->error.status, FSDP_ERR_INVALID);
    assert_int_equal(b->error.rank, 3);
    assert_string_equal(b->error.where, where);
    assert_string_equal(b->error.message, message);
}

static struct fsdp_op add(void *a, void *b, void *y, uint64_t bytes)
{
    return (struct fsdp_op){.size = sizeof(struct fsdp_op),
                            .kind = FSDP_OP_ADD,
                            .unit = 2,
                            .dim = {bytes / 4},
                            .n_in = 2,
                            .n_out = 1,
                            .in = {{a, bytes}, {b, bytes}},
                            .out = {{y, bytes}}};
}

UNIT_TEST(ranges_of_an_operator)
{
    struct bench b;
    struct fsdp_op op = add(arena, arena + 192, arena + 128, 64);
    unsigned char elsewhere[4];

    make(&b);
    assert_int_equal(refusal_of_operator_ranges(&b.meter, false, &op), 0);
    op = add(arena + 256, arena, arena, 128); /* begins where another ends */
    assert_int_equal(refusal_of_operator_ranges(&b.meter, false, &op), 0);
    op = add(elsewhere, elsewhere, elsewhere, 1000); /* no allocation of this
                                                        meter */
    assert_int_equal(refusal_of_operator_ranges(&b.meter, false, &op), 0);
    assert_int_equal(b.error.status, FSDP_OK);
    op = add(arena, arena + 196, arena + 128, 64);
    assert_int_equal(refusal_of_operator_ranges(&b.meter, false, &op),
                     FSDP_ERR_INVALID);
    said(&b, "device",
         "add of unit 2: in[1], 64 bytes, ends 4 bytes beyond its allocation");
    op = add(arena, arena, arena + 384, 8); /* begins at the very end */
    assert_int_equal(refusal_of_operator_ranges(&b.meter, true, &op),
                     FSDP_ERR_INVALID);
    said(&b, "device", /* the first writer wins */
         "add of unit 2: in[1], 64 bytes, ends 4 bytes beyond its allocation");
    make(&b);
    (void)refusal_of_operator_ranges(&b.meter, true, &op);
    said(&b, "device",
         "the model's add: out[0], 8 bytes, ends 8 bytes beyond its "
         "allocation");
}

UNIT_TEST(ranges_of_a_copy)
{
    struct bench b;
    unsigned char host[64] = {0};

    make(&b);
    assert_int_equal(
        refusal_of_copy_ranges(&b.meter, false, arena + 192, host, 64), 0);
    assert_int_equal(
        refusal_of_copy_ranges(&b.meter, false, host, arena + 324, 64),
        FSDP_ERR_INVALID);
    said(&b, "device",
         "copy of 64 bytes: 'from' ends 4 bytes beyond its allocation");
}

UNIT_TEST(buffers_of_a_collective)
{
    struct fsdp_collective c = {.size = sizeof(c),
                                .kind = FSDP_ALL_GATHER,
                                .dim = FSDP_DIM_SHARD,
                                .dtype = FSDP_DTYPE_F32,
                                .unit = 1,
                                .n = 16,
                                .in = arena + 256,
                                .out = arena};
    struct bench b;

    make(&b);
    assert_int_equal(refusal_of_collective(&b.meter, 4, &c), 0);
    c.n = 17;
    assert_int_equal(refusal_of_collective(&b.meter, 4, &c), FSDP_ERR_INVALID);
    said(&b, "comm",
         "all-gather of unit 1, n 17: 'out', 272 bytes, ends 16 bytes beyond "
         "its allocation");
    make(&b);
    c.kind = FSDP_REDUCE_SCATTER;
    assert_int_equal(refusal_of_collective(&b.meter, 4, &c), FSDP_ERR_INVALID);
    said(&b, "comm",
         "reduce-scatter of unit 1, n 17: 'in', 272 bytes, ends 144 bytes "
         "beyond its allocation");
    make(&b);
    c.in = NULL;
    assert_int_equal(refusal_of_collective(&b.meter, 4, &c), FSDP_ERR_INVALID);
    said(&b, "comm", "reduce-scatter of unit 1, n 17: 'in' is NULL");
    make(&b);
    c.n = UINT64_MAX; /* the communicator refuses it */
    assert_int_equal(refusal_of_collective(&b.meter, 4, &c), 0);
    c.n = 0;
    assert_int_equal(refusal_of_collective(&b.meter, 4, &c), 0);
}

UNIT_TEST(what_a_device_refused)
{
    struct fsdp_op op = add(arena, arena + 64, arena + 32, 64);
    struct bench b;

    make(&b);
    refusal_by_device(&b.meter, false, &op);
    said(&b, "device",
         "add of unit 2 is not as op.h has it: in[0] and out[0] overlap in "
         "part (dim 16; bytes in 64 64; out 64)");
    make(&b);
    op.in[0].p = NULL;
    op.in[1].p = NULL;
    refusal_by_device(&b.meter, false, &op);
    said(&b, "device",
         "add of unit 2 is not as op.h has it: in[0] is NULL (dim 16; bytes "
         "in 64 64; out 64)");
    make(&b);
    op = add(arena, arena + 64, arena + 128, 64);
    op.dim[0] = 15;
    refusal_by_device(&b.meter, false, &op);
    said(&b, "device",
         "add of unit 2 is not as op.h has it: dim 15; bytes in 64 64; out "
         "64");
    make(&b);
    refusal_of_copy(&b.meter, false, NULL, arena, 8);
    said(&b, "device", "copy of 8 bytes: 'to' is NULL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_of_an_operator),
        cmocka_unit_test(ranges_of_a_copy),
        cmocka_unit_test(buffers_of_a_collective),
        cmocka_unit_test(what_a_device_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
