/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_attention_test.c - ATTENTION and its backward, bit for bit against op.h
 * taken literally: a chain at a time, from a full matrix of scores.
 */
#include "op_literal_test.h"
#include "ops_test.h"

#include <fsdp/arith/exp.h>

enum {
    MOST = 70
};

/* One head of one sequence: dimension d of what time i has of a matrix that
 * is `parts` wide (3 for qkv) and holds `part` (0 q, 1 k, 2 v). */
struct head {
    const struct trial *t;
    uint64_t time, heads, n, sequence, h;
};

static uint64_t at(const struct head *head, uint64_t i, uint64_t parts,
                   uint64_t part)
{
    uint64_t row = head->sequence * head->time + i;

    return ((row * parts + part) * head->heads + head->h) * head->n;
}

static uint64_t stat_at(const struct head *head, uint64_t i)
{
    uint64_t row = head->sequence * head->time + i;

    return (row * head->heads + head->h) * 2;
}

static float score(const struct head *head, enum literal_order order,
                   uint64_t i, uint64_t j)
{
    const float *qkv = head->t->in[0];

    return literal_chain(order, head->n, qkv + at(head, i, 3, 0), 1,
                         qkv + at(head, j, 3, 1), 1) *
           head->t->op.f[0];
}

static uint64_t forward_differences(const struct head *head,
                                    enum literal_order order)
{
    const struct trial *t = head->t;
    uint64_t count = 0;

    for (uint64_t i = 0; i < head->time; i++) {
        float s[MOST];
        float m;
        float l = 0.0f;

        for (uint64_t j = 0; j <= i; j++) {
            s[j] = score(head, order, i, j);
        }
        m = literal_maximum(s, i + 1);
        for (uint64_t j = 0; j <= i; j++) {
            s[j] = fsdp_expf(s[j] - m);
            l = l + s[j];
        }
        count += !same_bits(t->out[1][stat_at(head, i)], m);
        count += !same_bits(t->out[1][stat_at(head, i) + 1], l);
        for (uint64_t d = 0; d < head->n; d++) {
            float o = literal_chain(order, i + 1, s, 1,
                                    t->in[0] + at(head, 0, 3, 2) + d,
                                    3 * head->heads * head->n) /
                      l;

            count += !same_bits(t->out[0][at(head, i, 1, 0) + d], o);
        }
    }
    return count;
}

/* p and ds of the whole head. */
static void weights(const struct head *head, enum literal_order order,
                    float (*p)[MOST], float (*ds)[MOST])
{
    const struct trial *t = head->t;

    for (uint64_t i = 0; i < head->time; i++) {
        const float *do_i = t->in[3] + at(head, i, 1, 0);
        const float *stat = t->in[2] + stat_at(head, i);
        float dot = literal_chain(order, head->n, do_i, 1,
                                  t->in[1] + at(head, i, 1, 0), 1);

        for (uint64_t j = 0; j <= i; j++) {
            float dp = literal_chain(order, head->n, do_i, 1,
                                     t->in[0] + at(head, j, 3, 2), 1);

            p[i][j] = fsdp_expf(score(head, order, i, j) - stat[0]) / stat[1];
            ds[i][j] = p[i][j] * (dp - dot);
        }
    }
}

static uint64_t backward_differences(const struct head *head,
                                     enum literal_order order)
{
    const struct trial *t = head->t;
    uint64_t row = head->heads * head->n;
    float p[MOST][MOST];
    float ds[MOST][MOST];
    uint64_t count = 0;

    weights(head, order, p, ds);
    for (uint64_t i = 0; i < head->time; i++) {
        for (uint64_t d = 0; d < head->n; d++) {
            uint64_t later = head->time - i;
            const float *do_d = t->in[3] + at(head, i, 1, 0) + d;
            const float *q_d = t->in[0] + at(head, i, 3, 0) + d;
            const float *k_d = t->in[0] + at(head, 0, 3, 1) + d;
            float dq = literal_chain(order, i + 1, ds[i], 1, k_d, 3 * row);
            float dk =
                literal_chain(order, later, &ds[i][i], MOST, q_d, 3 * row);
            float dv = literal_chain(order, later, &p[i][i], MOST, do_d, row);

            count +=
                !same_bits(t->out[0][at(head, i, 3, 0) + d], dq * t->op.f[0]);
            count +=
                !same_bits(t->out[0][at(head, i, 3, 1) + d], dk * t->op.f[0]);
            count += !same_bits(t->out[0][at(head, i, 3, 2) + d], dv);
        }
    }
    return count;
}

static uint64_t all_heads(const struct trial *t, enum literal_order order,
                          uint64_t (*differences)(const struct head *,
                                                  enum literal_order))
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < t->op.dim[0] * t->op.dim[2]; i++) {
        struct head head = {t,
                            t->op.dim[1],
                            t->op.dim[2],
                            t->op.dim[3],
                            i / t->op.dim[2],
                            i % t->op.dim[2]};

        count += differences(&head, order);
    }
    return count;
}

UNIT_TEST(attention_is_literal)
{
    static const uint64_t dims[][4] = {
        {0, 5, 2, 4},   {2, 0, 2, 4},  {2, 5, 0, 4},  {2, 5, 3, 0},
        {1, 1, 1, 1},   {2, 31, 3, 8}, {1, 32, 2, 5}, {3, 33, 1, 31},
        {2, 65, 2, 16}, {1, 70, 1, 65}};

    for (uint32_t i = 0; i < 10; i++) {
        const uint64_t *dim = dims[i];
        struct trial f;
        struct trial b;

        trial_open(&f, FSDP_OP_ATTENTION, dim[0], dim[1], dim[2], dim[3], 0);
        trial_open(&b, FSDP_OP_ATTENTION_BACKWARD, dim[0], dim[1], dim[2],
                   dim[3], 0);
        f.op.f[0] = b.op.f[0] = 0.03f;

        assert_int_equal(trial_run(&f), FSDP_OK);
        memcpy(b.in[0], f.in[0], f.op.in[0].bytes);
        memcpy(b.in[1], f.out[0], f.op.out[0].bytes);
        memcpy(b.in[2], f.out[1], f.op.out[1].bytes);
        assert_int_equal(trial_run(&b), FSDP_OK);

        assert_int_equal(all_heads(&f, LITERAL_FORWARD, forward_differences),
                         0);
        assert_int_equal(all_heads(&b, LITERAL_FORWARD, backward_differences),
                         0);
        if (i > 4) {
            assert_true(all_heads(&f, LITERAL_BACKWARD, forward_differences) >
                        0);
            assert_true(all_heads(&b, LITERAL_BACKWARD, backward_differences) >
                        0);
        }
        trial_close(&f);
        trial_close(&b);
    }
}

/* A NaN in the key of time 3 spoils the queries from then on, of its head. */
UNIT_TEST(nan_spoils_what_sees_it)
{
    struct trial t;

    trial_open(&t, FSDP_OP_ATTENTION, 1, 6, 2, 4, 0);
    t.op.f[0] = 0.5f;
    t.in[0][3 * 24 + 8 + 4] = NAN; /* k of head 1 */

    assert_int_equal(trial_run(&t), FSDP_OK);

    for (uint64_t i = 0; i < 6; i++) {
        for (uint64_t h = 0; h < 2; h++) {
            int spoiled = h == 1 && i >= 3;

            assert_int_equal(isnan(t.out[1][(i * 2 + h) * 2]) != 0, spoiled);
            assert_int_equal(isnan(t.out[0][i * 8 + h * 4]) != 0, spoiled);
        }
    }
    trial_close(&t);
}

/* Zeros of both signs: the maximum is +0, whichever comes first. */
UNIT_TEST(maximum_of_zeros_is_positive)
{
    struct trial t;

    for (uint64_t first = 0; first < 2; first++) {
        trial_open(&t, FSDP_OP_ATTENTION, 1, 2, 1, 1, 0);
        t.op.f[0] = 1.0f;
        t.in[0][3] = 0x1p-100f;                   /* q of time 1 */
        t.in[0][1 + 3 * first] = -0x1p-100f;      /* underflows to -0 */
        t.in[0][1 + 3 * (1 - first)] = 0x1p-100f; /* and this to +0 */

        assert_int_equal(trial_run(&t), FSDP_OK);

        assert_true(same_bits(t.out[1][2], 0.0f));
        assert_true(same_bits(t.out[1][3], 2.0f));
        trial_close(&t);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_is_literal),
        cmocka_unit_test(nan_spoils_what_sees_it),
        cmocka_unit_test(maximum_of_zeros_is_positive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
