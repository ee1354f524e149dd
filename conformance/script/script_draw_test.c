/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_draw_test.c - scripts that are drawn: each of 20,000 is legal, reads
 * back as the same, is the same when it is drawn again; its cases can be made;
 * and the first thousand are those that they have always been.
 */
#include "cases/case_model.h"
#include "models/text.h"
#include "script/script_draw.h"
#include "script/script_testing.h"
#include "testing/unit_testing.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

enum {
    N_DRAWN = 20000
};

static char *text_by(uint32_t generator, uint64_t seed)
{
    struct script s;
    char *text;

    script_test_draw(generator, seed, &s);
    text = script_text(&s);
    assert_non_null(text);
    script_release(&s);
    return text;
}

static char *text_of(uint64_t seed)
{
    return text_by(SCRIPT_GENERATOR, seed);
}

static void assert_legal(const struct script *s, uint64_t seed)
{
    static const uint32_t lengths[][2] = {{8, 4}, {4, 2}, {11, 3}, {1000, 500}};
    struct fsdp_error error = {0};

    if (script_legal(s, NULL, &error) != FSDP_OK) {
        fail_msg("seed %llu: %s", (unsigned long long)seed, error.message);
    }
    for (size_t i = 0; i < N_OF(lengths); i++) {
        if (script_legal(s, lengths[i], &error) != FSDP_OK) {
            fail_msg("seed %llu, %u points: %s", (unsigned long long)seed,
                     lengths[i][0], error.message);
        }
    }
}

UNIT_TEST(test_legal)
{
    for (uint64_t seed = 0; seed < N_DRAWN; seed++) {
        char id[CASE_ID_BYTES];
        struct script s;

        script_test_draw(SCRIPT_GENERATOR, seed, &s);
        case_id(&s.c, id); /* and ".text-" with twelve digits */
        assert_in_range(strlen(id), 1, CASE_ID_BYTES - 2 - 18);
        assert_legal(&s, seed);
        assert_in_range(s.n_actions, SCRIPT_LEAST_DRAWN, SCRIPT_MOST_DRAWN);
        assert_in_range(s.groups, 1, 5);
        assert_in_range(s.c.ranks, 1, 16);
        assert_null(case_check(&s.c));
        script_release(&s);
    }
}

UNIT_TEST(test_text)
{
    for (uint64_t seed = 0; seed < N_DRAWN; seed++) {
        struct fsdp_error error = {0};
        struct script s;
        char *text = text_of(seed);
        char *again;

        if (script_parse(text, &s, &error) != FSDP_OK) {
            fail_msg("seed %llu: %s\n%s", (unsigned long long)seed,
                     error.message, text);
        }
        again = script_text(&s);
        assert_string_equal(again, text);
        script_release(&s);
        free(again);
        again = text_of(seed);
        assert_string_equal(again, text);
        free(again);
        free(text);
    }
}

/* Every case, and every world that a script goes on in, can be made, with as
 * many units as an engine reaches ahead. */
static void assert_made(const struct run_case *c, const struct text *book)
{
    struct fsdp_error error = {0};
    struct case_model m;
    char id[CASE_ID_BYTES];

    case_id(c, id);
    if (case_model_make(c, book->bytes, book->n, &m, &error) != FSDP_OK) {
        fail_msg("%s: %s", id, error.message);
    }
    if (m.units.units.n_units < c->prefetch_forward ||
        m.units.units.n_units < c->prefetch_backward ||
        m.units.units.n_units < c->reduces_in_flight) {
        fail_msg("%s: it has %u units", id, m.units.units.n_units);
    }
    case_model_release(&m);
}

UNIT_TEST(test_made)
{
    struct fsdp_error error = {0};
    struct text book;

    assert_int_equal(text_load(NULL, &book, &error), FSDP_OK);
    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct run_case c;
        struct script s;

        script_test_draw(SCRIPT_GENERATOR, seed, &s);
        c = s.c;
        assert_made(&c, &book);
        for (uint32_t i = 0; i < s.n_actions; i++) {
            if (s.action[i].verb == SCRIPT_ANEW &&
                s.action[i].world.ranks != 0) {
                script_case_in(&c, &s.action[i].world, &c);
                assert_made(&c, &book);
            }
        }
        script_release(&s);
    }
    text_release(&book);
}

/* ---- The same on every machine ---- */

static void sum_of(uint32_t generator, char hex[2 * SHA256_DIGEST_LENGTH + 1])
{
    unsigned char sum[SHA256_DIGEST_LENGTH];
    char *all = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&all, &n);

    assert_non_null(f);
    for (uint64_t seed = 0; seed < 1000; seed++) {
        char *text = text_by(generator, seed);

        fprintf(f, "%s", text);
        free(text);
    }
    assert_int_equal(fclose(f), 0);
    assert_non_null(SHA256((unsigned char *)all, n, sum));
    free(all);
    for (size_t i = 0; i < sizeof(sum); i++) {
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    }
}

static const char golden_text[] =
    "script 1\n"
    "case "
    "graph.random.natural.full-shard.k9.flat.drawn.rank.ssss.sgd."
    "recompute-around.seed789511\n"
    "--\n"
    "step lr 0.025\n"
    "anew k9 full-shard\n"
    "save d sharded\n"
    "pass 0.0 s\n"
    "step lr 0.0375\n"
    "look\n"
    "pass 0.1 s\n"
    "step lr 0.0375 decay 0.001\n"
    "zero\n"
    "wait d\n"
    "clip inf p inf\n"
    "look\n"
    "pass 0.2 n\n"
    "pass 0.3\n"
    "again\n"
    "load d\n"
    "look\n"
    "pass 1.0 s set zero rank 0\n"
    "step lr 0.0625 decay 0.01\n"
    "look\n"
    "look\n"
    "zero\n"
    "look\n"
    "pass 1.1 n\n"
    "pass 1.2 s\n"
    "! set-to-two\n"
    "step lr 0.025 decay 0\n"
    "look\n"
    "pass 1.3 n\n"
    "pass 1.3 n\n"
    "pass 2.0 s at 1/1 sync off inf rank 2\n"
    "clip 0.001 p 2\n"
    "look\n"
    "step lr 0.00625\n"
    "look\n"
    "load d\n"
    "eval 2.1\n"
    "eval 2.2\n"
    "pass 2.3 s\n"
    "set 0 all-reduce 1\n";

/* The first thousand scripts of each generator; of the oldest also the third,
 * as a text to be read. */
UNIT_TEST(test_golden)
{
    static const struct {
        uint32_t generator;
        const char *sum;
    } golden[] = {
        {2, "81d38d37293e26684aae4bdf9c580ba8342a8d061cf74338f7bae36879ff16b4"},
        {3, "cb6cb7351763b179577de5cc3a965ca70cd7aac47c382a1cece28dbc4bf46c9f"},
        {4, "f23f2e396405163bde91729eab66270cb2fb83ac9e5955a62115fd8159e38e20"},
        {5, "398e2c2502000ac8710b8fc1e92b4926b5335e0e9e85dca539cbff65acab0d44"},
        {6, "6d59338d158258617e0bcba0621c80fab0191cae85e9920de599dd69e0f8023f"},
        {7, "b97cf4f0161a306a9612d9a106b1460430e9f30410a398af0f30c07051bebb9d"},
    };

    char *text = text_by(SCRIPT_OLDEST_GENERATOR, 3);

    assert_string_equal(text, golden_text);
    free(text);
    assert_int_equal(golden[0].generator, SCRIPT_OLDEST_GENERATOR);
    assert_int_equal(golden[N_OF(golden) - 1].generator, SCRIPT_GENERATOR);
    for (size_t i = 0; i < N_OF(golden); i++) {
        char hex[2 * SHA256_DIGEST_LENGTH + 1];

        sum_of(golden[i].generator, hex);
        assert_string_equal(hex, golden[i].sum);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_legal),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_made),
        cmocka_unit_test(test_golden),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
