/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_docs_test.c - the examples of docs/specification.md that have numbers:
 * one parameter in both layouts, what is live of one unit in a step, and values
 * in bfloat16. The oracle and the arithmetic say what must stand there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "judge/oracle/expect_testing.h"

#include <fsdp/arith/bf16.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHARDS = 4,
    ROWS = 5,
    COLUMNS = 3,
    MOST_BYTES = 1 << 18,
    MOST_MOMENTS = 16,
    TEXT = 64
};

static char page[MOST_BYTES];

static int read_page(void **state)
{
    FILE *f = fopen(FIXTURES_DIR "/../docs/specification.md", "r");
    size_t n;

    (void)state;
    assert_non_null(f);
    n = fread(page, 1, sizeof(page) - 1, f);
    page[n] = '\0';
    assert_int_equal(fclose(f), 0);
    assert_true(n > 0 && n < sizeof(page) - 1);
    return 0;
}

/* The page has these lines, one after the other. */
__attribute__((format(printf, 1, 2))) static void page_has(const char *format,
                                                           ...)
{
    char text[1024];
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    assert_true(n > 0 && (size_t)n < sizeof(text));
    if (!strstr(page, text)) {
        fail_msg("docs/specification.md lacks:%s", text);
    }
}

/* ---- One parameter in both layouts ----------------------------------------
 */

/* "4, 4, 4, 3": elements that each shard owns, or lacks; or so many rows. */
static void list_owned(const struct expect *e, bool padding, uint64_t each,
                       char text[TEXT])
{
    size_t length = 0;

    for (uint32_t s = 0; s < SHARDS; s++) {
        struct expect_part *part = NULL;
        uint32_t n_parts = 0;
        uint64_t n = 0;

        assert_int_equal(expect_parts(e, s, &part, &n_parts), FSDP_OK);
        for (uint32_t i = 0; i < n_parts; i++) {
            n += part[i].n;
        }
        free(part);
        n = padding ? e->unit[0].chunk - n : n;
        assert_int_equal(n % each, 0);
        length += (size_t)snprintf(text + length, TEXT - length, "%s%u",
                                   s > 0 ? ", " : "", (unsigned)(n / each));
        assert_true(length < TEXT);
    }
}

static void both_layouts(void **state)
{
    char owned[2][TEXT];
    char padding[2][TEXT];
    char sizes[TEXT];
    char chunk[TEXT];
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, SHARDS, 1);
    struct expect e[2];

    (void)state;
    testing_model(&t, "-0", "1:5", "F1 f1 B1 b1", "F1 f1");
    t.shape[0][0] = ROWS;
    t.shape[0][1] = COLUMNS;
    t.n_dims[0] = 2;
    for (uint32_t i = 0; i < 2; i++) {
        c.layout = i == 0 ? FSDP_LAYOUT_FLAT : FSDP_LAYOUT_PER_PARAMETER;
        assert_int_equal(expect_make(&c, &t.model, &t.units, &e[i]), FSDP_OK);
        list_owned(&e[i], false, i == 0 ? 1 : COLUMNS, owned[i]);
        list_owned(&e[i], true, 1, padding[i]);
    }
    (void)snprintf(chunk, sizeof(chunk), "%u elements",
                   (unsigned)e[0].unit[0].chunk);
    (void)snprintf(sizes, sizeof(sizes), "%u, %u",
                   (unsigned)e[0].unit[0].padded, (unsigned)e[0].unit[0].whole);
    (void)strncat(owned[0], " elements", TEXT - strlen(owned[0]) - 1);
    page_has("\n    %-21s%-24s%u rows: %u elements\n"
             "    %-21s%-24s%s rows\n"
             "    %-21s%-24s%s\n"
             "    %-21s%-24s%u, %u\n",
             "chunk_u", chunk, (unsigned)(e[1].unit[0].chunk / COLUMNS),
             (unsigned)e[1].unit[0].chunk, "the ranks own", owned[0], owned[1],
             "and padding", padding[0], padding[1], "padded_u, whole_u", sizes,
             (unsigned)e[1].unit[0].padded, (unsigned)e[1].unit[0].whole);
    expect_release(&e[0]);
    expect_release(&e[1]);
}

/* ---- What is live in a step -----------------------------------------------
 */

/* What is live beside the shard, after each change. */
struct seen {
    uint64_t live[RECORD_N_KINDS];
    uint32_t n;
    char moment[MOST_MOMENTS][TEXT];
};

static void see_live(void *context, uint32_t kind, uint64_t bytes, bool lives)
{
    static const struct {
        uint32_t kind;
        const char *name;
    } told[] = {{FSDP_PARAM_FULL, "PARAM_FULL"},
                {FSDP_GRAD_FULL, "GRAD_FULL"},
                {FSDP_GRAD_SHARD, "GRAD_SHARD"}};
    struct seen *s = context;
    char *text = s->moment[s->n];
    size_t length = 0;

    s->live[kind] = lives ? s->live[kind] + bytes : s->live[kind] - bytes;
    if (kind == FSDP_PARAM_SHARD) {
        return;
    }
    assert_true(s->n < MOST_MOMENTS);
    text[0] = '\0';
    for (uint32_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
        const uint64_t n = s->live[told[i].kind] / sizeof(float);

        if (n > 0) {
            length += (size_t)snprintf(text + length, TEXT - length, "%s%s %u",
                                       length > 0 ? ", " : "", told[i].name,
                                       (unsigned)n);
        }
    }
    s->n++;
}

/* Changes: the forward's copy, its end, the backward's, the gradient, the end
 * of the copy, the gradient shard, the end of the gradient, and zero_grad. */
static void live_in_a_step(void **state)
{
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, SHARDS, 1);
    struct seen s = {0};
    const struct expect_watch w = {.live = see_live, .context = &s};
    struct expect e;

    (void)state;
    testing_model(&t, "-0", "1:8", "F1 f1 B1 b1", "F1 f1");
    c.layout = FSDP_LAYOUT_FLAT;
    assert_int_equal(expect_make_watched(&c, &t.model, &t.units, NULL, &w, &e),
                     FSDP_OK);
    assert_int_equal(s.n, 8);
    assert_string_equal(s.moment[1], "");
    assert_string_equal(s.moment[7], "");
    page_has(
        "\n    at rest          PARAM_SHARD %u                   and beside "
        "it\n    PRE_FORWARD      %s\n    POST_FORWARD\n"
        "    PRE_BACKWARD     %s\n    POST_BACKWARD    %s ",
        (unsigned)(s.live[FSDP_PARAM_SHARD] / sizeof(float)), s.moment[0],
        s.moment[3], s.moment[5]);
    page_has("\n    behind it        %s ", s.moment[6]);
    expect_release(&e);
}

/* ---- Mixed precision ------------------------------------------------------
 */

static double rounded(float x)
{
    return (double)fsdp_bf16_to_f32(fsdp_bf16_from_f32(x));
}

static void values_in_bf16(void **state)
{
    const float sum = 256.0f + 1.0f;

    (void)state;
    page_has("\n    a weight that rests as 1 + 2^-8           "
             "P = BF16: is gathered as %g\n"
             "    gradients 256 and 1 of two microbatches   "
             "A = BF16: acc = %g\n"
             "                                              "
             "A = F32:  acc = %g, sent as %g where Rd = BF16\n",
             rounded(1.0f + 0x1p-8f), rounded(sum), (double)sum, rounded(sum));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_layouts),
        cmocka_unit_test(live_in_a_step),
        cmocka_unit_test(values_in_bf16),
    };

    return cmocka_run_group_tests(tests, read_page, NULL) != 0;
}
