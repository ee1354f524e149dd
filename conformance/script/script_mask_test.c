/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_mask_test.c - what is kept of drawn scripts: whatever a mask says, a
 * legal script, whose id reads back; and what an engine is asked for that
 * claims less.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cases/case_claims.h"
#include "script/script_chance.h"
#include "script/script_mask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

static void draw(uint64_t seed, struct script *s)
{
    struct fsdp_error error = {0};

    assert_int_equal(script_draw(seed, s, &error), FSDP_OK);
}

static void assert_legal(const struct script *s, uint64_t seed)
{
    static const uint32_t lengths[][2] = {{8, 4}, {4, 2}, {11, 3}};
    struct fsdp_error error = {0};
    char *text = script_text(s);

    assert_non_null(text);
    for (size_t i = 0; i < N_OF(lengths); i++) {
        if (script_legal(s, lengths[i], &error) != FSDP_OK) {
            fail_msg("seed %llu: %s\n%s", (unsigned long long)seed,
                     error.message, text);
        }
    }
    assert_null(case_check(&s->c));
    free(text);
}

static void assert_same(const struct script *a, const struct script *b)
{
    char *one = script_text(a);
    char *other = script_text(b);

    assert_non_null(one);
    assert_non_null(other);
    assert_string_equal(one, other);
    free(one);
    free(other);
}

/* Some of its actions, some choices plain, some actions that say less. */
static void draw_mask(const struct script *s, struct chance *c,
                      struct script_mask *m)
{
    uint32_t keep = 1 + chance_below(c, 4);

    script_mask_all(s, m);
    for (uint32_t i = 0; i < s->n_actions; i++) {
        m->actions &= ~((uint64_t)chance_one_in(c, keep + 1) << i);
        m->less[i] = (uint8_t)chance_below(c, 16);
    }
    for (uint32_t i = 0; i < SCRIPT_N_PLAIN; i++) {
        m->plain |= (uint32_t)chance_one_in(c, 4) << i;
    }
}

/* ---- Masks ---- */

static void test_all(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct fsdp_error error = {0};
        struct script_mask all;
        struct script_mask left;
        struct script s;
        struct script kept;

        draw(seed, &s);
        script_mask_all(&s, &all);
        assert_int_equal(script_masked(&s, &all, &kept, &left, &error),
                         FSDP_OK);
        assert_true(script_mask_same(&all, &left));
        assert_same(&s, &kept);
        script_release(&kept);
        script_release(&s);
    }
}

/* What a mask leaves is legal, leaves itself, and is what its id says. */
static void assert_mask(uint64_t seed, const struct script *s,
                        const struct script_mask *mask)
{
    struct fsdp_error error = {0};
    struct script_mask left;
    struct script_mask again;
    struct script kept;
    struct script other;
    uint64_t from;
    char id[SCRIPT_ID_BYTES];

    assert_int_equal(script_masked(s, mask, &kept, &left, &error), FSDP_OK);
    assert_legal(&kept, seed);
    assert_int_equal(left.actions & ~mask->actions, 0);
    assert_int_equal(left.plain & ~mask->plain, 0);
    assert_int_equal(script_masked(s, &left, &other, &again, &error), FSDP_OK);
    assert_true(script_mask_same(&left, &again));
    assert_same(&kept, &other);
    script_release(&other);

    script_id(seed, s, &left, id);
    assert_true(strlen(id) < SCRIPT_ID_BYTES);
    if (script_of_id(id, &other, &from, &again, &error) != FSDP_OK) {
        fail_msg("%s", error.message);
    }
    assert_true(from == seed);
    assert_true(script_mask_same(&left, &again));
    assert_same(&kept, &other);
    script_release(&other);
    script_release(&kept);
}

static void test_masks(void **state)
{
    struct chance chance = {.seed = 1};

    (void)state;
    for (uint64_t seed = 0; seed < 5000; seed++) {
        struct script_mask mask;
        struct script s;

        draw(seed, &s);
        draw_mask(&s, &chance, &mask);
        assert_mask(seed, &s, &mask);
        script_release(&s);
    }
}

/* Every plain choice and every action that says less occurs, alone. */
static void test_bits(void **state)
{
    uint32_t plain[SCRIPT_N_PLAIN] = {0};
    uint32_t less[SCRIPT_N_VERBS][SCRIPT_LESS_BITS] = {{0}};

    (void)state;
    for (uint64_t seed = 0; seed < 600; seed++) {
        struct fsdp_error error = {0};
        struct script_mask left;
        struct script s;
        struct script kept;

        draw(seed, &s);
        for (uint32_t i = 0; i < SCRIPT_N_PLAIN; i++) {
            struct script_mask mask;

            script_mask_all(&s, &mask);
            mask.plain = 1u << i;
            assert_int_equal(script_masked(&s, &mask, &kept, &left, &error),
                             FSDP_OK);
            plain[i] += left.plain == 1u << i;
            script_release(&kept);
        }
        for (uint32_t k = 0; k < SCRIPT_LESS_BITS; k++) {
            struct script_mask mask;

            script_mask_all(&s, &mask);
            memset(mask.less, 1 << k, sizeof(mask.less));
            assert_int_equal(script_masked(&s, &mask, &kept, &left, &error),
                             FSDP_OK);
            for (uint32_t i = 0; i < s.n_actions; i++) {
                less[s.action[i].verb][k] += left.less[i] != 0;
            }
            script_release(&kept);
        }
        script_release(&s);
    }
    for (uint32_t i = 0; i < SCRIPT_N_PLAIN; i++) {
        assert_true(plain[i] > 20);
    }
    for (uint32_t k = 0; k < SCRIPT_LESS_BITS; k++) {
        assert_true(less[SCRIPT_PASS][k] > 10);
        assert_true((less[SCRIPT_EVAL][k] > 10) == (k != 0));
        assert_true((less[SCRIPT_STEP][k] > 10) == (k < 3));
        assert_true((less[SCRIPT_CLIP][k] > 10) == (k < 3));
        assert_true((less[SCRIPT_SAVE][k] > 10) == (k < 1));
        assert_true((less[SCRIPT_ANEW][k] > 10) == (k < 2));
        assert_true((less[SCRIPT_REPEAT][k] > 10) == (k < 2));
        assert_int_equal(less[SCRIPT_LOOK][k], 0);
    }
}

/* ---- What bits do ---- */

static void assert_masked(const char *from, const struct script_mask *mask,
                          const char *to, const struct script_mask *kept)
{
    struct fsdp_error error = {0};
    struct script_mask left;
    struct script s;
    struct script out;
    char *text;

    if (script_parse(from, &s, &error) != FSDP_OK) {
        fail_msg("%s: %s", from, error.message);
    }
    assert_int_equal(script_masked(&s, mask, &out, &left, &error), FSDP_OK);
    text = script_text(&out);
    assert_non_null(text);
    if (strcmp(text, to) != 0 || !script_mask_same(&left, kept)) {
        fail_msg("%s\nbecomes\n%s\n%llx-%x, not\n%s", from, text,
                 (unsigned long long)left.actions, left.plain, to);
    }
    free(text);
    script_release(&out);
    script_release(&s);
}

#define MLP   "mlp.seed.natural.full-shard.k4.flat.layer.rank.s.sgd"
#define MIXED "gpt.tiny.natural.hybrid-shard.k4r2.per-parameter.pair.tree.ss"

/* Settings behind the case, and all actions; by script_plain. */
static const struct {
    uint32_t plain;
    const char *from, *from_actions, *to, *to_actions;
} plains[] = {
    {SCRIPT_PLAIN_GROUPS, MLP "\ngroups 3", "step lr 1,2,3 decay 0,1,2\n", MLP,
     "step lr 1 decay 0\n"},
    {SCRIPT_PLAIN_AHEAD, MLP ".pf1.pb2.rif1", "look\n", MLP, "look\n"},
    {SCRIPT_PLAIN_AHEAD, MLP ".rif1", "look\n", MLP, "look\n"},
    {SCRIPT_PLAIN_AHEAD, MLP, "look\n", NULL, NULL},
    {SCRIPT_PLAIN_OPTIMIZER, MIXED ".adamw\nbetas 0.5 0.5", "look\n",
     MIXED ".sgd", "look\n"},
    {SCRIPT_PLAIN_NUMBERS, MIXED ".adamw\nbetas 0.5 0.5\neps 0.5", "look\n",
     MIXED ".adamw", "look\n"},
    {SCRIPT_PLAIN_MODEL, MIXED ".sgd", "look\n",
     "mlp.seed.natural.hybrid-shard.k4r2.per-parameter.pair.tree.ss.sgd",
     "look\n"},
    {SCRIPT_PLAIN_MODEL,
     "graph.random.natural.full-shard.k1.flat.drawn.rank.s.sgd.seed7", "look\n",
     "mlp.seed.natural.full-shard.k1.flat.layer.rank.s.sgd.seed7", "look\n"},
    {SCRIPT_PLAIN_MODEL, MLP, "look\n", NULL, NULL},
    {SCRIPT_PLAIN_MODEL, "mlp.odd.natural.full-shard.k4.flat.layer.rank.s.sgd",
     "look\n", MLP, "look\n"},
    /* As far ahead as there are units. */
    {SCRIPT_PLAIN_WRAP,
     "mlp.seed.natural.full-shard.k4.flat.whole.rank.s.sgd.pf1", "look\n",
     MLP ".pf1", "look\n"},
    {SCRIPT_PLAIN_RANKS_1, MIXED ".sgd", "look\n",
     "gpt.tiny.natural.full-shard.k1.per-parameter.pair.tree.ss.sgd", "look\n"},
    {SCRIPT_PLAIN_RANKS_2, MIXED ".sgd", "look\n",
     "gpt.tiny.natural.full-shard.k2.per-parameter.pair.tree.ss.sgd", "look\n"},
    {SCRIPT_PLAIN_RANKS_4, MIXED ".sgd", "look\n", NULL, NULL},
    {SCRIPT_PLAIN_RANKS_4,
     "mlp.seed.natural.hybrid-shard-zero2.k12r3.flat.layer.rank.s.sgd",
     "look\n", "mlp.seed.natural.shard-grad-op.k4.flat.layer.rank.s.sgd",
     "look\n"},
    {SCRIPT_PLAIN_RANKS_4,
     "mlp.seed.natural.hybrid-shard.k8r2.flat.layer.tree.s.sgd", "look\n",
     "mlp.seed.natural.hybrid-shard.k4r2.flat.layer.tree.s.sgd", "look\n"},
    {SCRIPT_PLAIN_RANKS_4,
     "mlp.seed.natural.no-shard.k16.flat.layer.tree.s.sgd", "look\n",
     "mlp.seed.natural.no-shard.k4.flat.layer.tree.s.sgd", "look\n"},
    {SCRIPT_PLAIN_STRATEGY, MIXED ".sgd", "look\n",
     "gpt.tiny.natural.full-shard.k4.per-parameter.pair.tree.ss.sgd", "look\n"},
    {SCRIPT_PLAIN_FOLD, MIXED ".sgd", "look\n",
     "gpt.tiny.natural.hybrid-shard.k4r2.per-parameter.pair.rank.ss.sgd",
     "look\n"},
    {SCRIPT_PLAIN_LAYOUT, MIXED ".sgd", "look\n",
     "gpt.tiny.natural.hybrid-shard.k4r2.flat.pair.tree.ss.sgd", "look\n"},
    {SCRIPT_PLAIN_WRAP, MIXED ".sgd", "look\n",
     "gpt.tiny.natural.hybrid-shard.k4r2.per-parameter.layer.tree.ss.sgd",
     "look\n"},
    {SCRIPT_PLAIN_WRAP,
     "graph.random.natural.full-shard.k1.flat.drawn.rank.s.sgd", "look\n", NULL,
     NULL},
    {SCRIPT_PLAIN_KEEP_ROOT, MLP ".keep-root", "look\n", MLP, "look\n"},
    {SCRIPT_PLAIN_DIVIDE, MLP ".div3", "look\n", MLP, "look\n"},
    {SCRIPT_PLAIN_REDUCED, MLP,
     "pass 0.0 n at 1/2 sync off at 1 ! end-early\nsync off\npass 0.0\n", MLP,
     "pass 0.0 s at 1/2 sync on at 1 ! end-early\nsync on\npass 0.0\n"},
    {SCRIPT_PLAIN_MICROBATCHES, MIXED ".sgd", "pass 3.1\neval 2.1\n",
     "gpt.tiny.natural.hybrid-shard.k4r2.per-parameter.pair.tree.s.sgd",
     "pass 3.0\neval 2.0\n"},
    {SCRIPT_PLAIN_SEED, MLP ".seed7", "look\n", MLP, "look\n"},
    {SCRIPT_PLAIN_SEED,
     "graph.random.natural.full-shard.k1.flat.drawn.rank.s.sgd.seed7", "look\n",
     NULL, NULL},
    /* What becomes illegal goes. */
    {SCRIPT_PLAIN_FOLD, "mlp.seed.natural.full-shard.k4.flat.layer.tree.s.sgd",
     "look\nanew k2 full-shard\n", MLP, "look\n"},
};

static void test_plain(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(plains); i++) {
        struct script_mask mask = {.actions = UINT64_MAX,
                                   .plain = plains[i].plain};
        struct script_mask kept = {.plain = plains[i].to ? mask.plain : 0};
        const char *to = plains[i].to ? plains[i].to : plains[i].from;
        const char *actions =
            plains[i].to ? plains[i].to_actions : plains[i].from_actions;
        char from_text[512];
        char to_text[512];

        for (const char *p = actions; *p; p++) {
            kept.actions = *p == '\n' ? 2 * kept.actions + 1 : kept.actions;
        }
        snprintf(from_text, sizeof(from_text), "script 1\ncase %s\n--\n%s",
                 plains[i].from, plains[i].from_actions);
        snprintf(to_text, sizeof(to_text), "script 1\ncase %s\n--\n%s", to,
                 actions);
        assert_masked(from_text, &mask, to_text, &kept);
    }
}

/* The first action, under all `less` bits; then what is left, and its bits. */
static const struct {
    uint8_t less, left;
    const char *from, *to;
} lesses[] = {
    {SCRIPT_LESS_EDITS, SCRIPT_LESS_EDITS, "pass 0.0 s inf set zero",
     "pass 0.0 s"},
    {SCRIPT_LESS_FIRST, SCRIPT_LESS_FIRST,
     "pass 0.0 at 0 sync on at 1/2 sync off nan",
     "pass 0.0 at 1/2 sync off nan"},
    {SCRIPT_LESS_SECOND, SCRIPT_LESS_SECOND,
     "pass 0.0 at 0 sync on at 1/2 sync off", "pass 0.0 at 0 sync on"},
    {SCRIPT_LESS_FIRST | SCRIPT_LESS_SECOND,
     SCRIPT_LESS_FIRST | SCRIPT_LESS_SECOND,
     "eval 0.0 at 0 sync on at 1/2 sync off at 1/1 sync on", "eval 0.0"},
    {SCRIPT_LESS_SECOND, 0, "eval 0.0 at 0 sync on", "eval 0.0 at 0 sync on"},
    {SCRIPT_LESS_FIRST, SCRIPT_LESS_FIRST, "eval 0.0 at 0 sync on", "eval 0.0"},
    {15, 0, "pass 0.0", "pass 0.0"},
    {SCRIPT_LESS_ENDING, SCRIPT_LESS_ENDING, "pass 0.0 until 1/2", "pass 0.0"},
    {SCRIPT_LESS_ENDING, SCRIPT_LESS_ENDING, "pass 0.0 left-open 3",
     "pass 0.0"},
    {SCRIPT_LESS_DECAY, SCRIPT_LESS_DECAY, "step lr 1,2 decay 3,4",
     "step lr 1,2"},
    {SCRIPT_LESS_RATES, SCRIPT_LESS_RATES, "step lr 1,2 decay 3",
     "step lr 1 decay 3"},
    {SCRIPT_LESS_RATE, 0, "step lr 1,2", "step lr 1,2"},
    {SCRIPT_LESS_RATE | SCRIPT_LESS_RATES, SCRIPT_LESS_RATE | SCRIPT_LESS_RATES,
     "step lr 1,2", "step lr 0.05"},
    {SCRIPT_LESS_RATE, 0, "step lr 0.05", "step lr 0.05"},
    {8, 0, "step lr 1,2 decay 3,4", "step lr 1,2 decay 3,4"},
    {SCRIPT_LESS_P, SCRIPT_LESS_P, "clip 1 p inf strict", "clip 1 p 2 strict"},
    {SCRIPT_LESS_NORM, SCRIPT_LESS_NORM, "clip 1 p 1 strict",
     "clip inf p 1 strict"},
    {SCRIPT_LESS_STRICT, SCRIPT_LESS_STRICT, "clip 1 p 1 strict", "clip 1 p 1"},
    {15, 0, "clip inf p 2", "clip inf p 2"},
    {SCRIPT_LESS_FORM, SCRIPT_LESS_FORM, "save a full-rank0\nwait a",
     "save a sharded\nwait a"},
    {14, 0, "save a full-rank0\nwait a", "save a full-rank0\nwait a"},
    {SCRIPT_LESS_WORLD, SCRIPT_LESS_WORLD, "anew k4 shard-grad-op", "anew"},
    {SCRIPT_LESS_PROCESS, SCRIPT_LESS_PROCESS, "anew k4 shard-grad-op",
     "again"},
    {12, 0, "anew k4 shard-grad-op", "anew k4 shard-grad-op"},
    {SCRIPT_LESS_TEN, SCRIPT_LESS_TEN, "repeat 42 {\nlook\n}",
     "repeat 10 {\nlook\n}"},
    {SCRIPT_LESS_TWO, SCRIPT_LESS_TWO, "repeat 42 {\nlook\n}",
     "repeat 2 {\nlook\n}"},
    {SCRIPT_LESS_TEN, 0, "repeat 10 {\nlook\n}", "repeat 10 {\nlook\n}"},
    {12, 0, "repeat 42 {\nlook\n}", "repeat 42 {\nlook\n}"},
    {15, 0, "sync off", "sync off"},
};

static void test_less(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(lesses); i++) {
        struct script_mask mask = {.actions = UINT64_MAX,
                                   .less = {lesses[i].less}};
        bool two = strchr(lesses[i].from, '\n') != NULL;
        struct script_mask kept = {.actions = two ? 3 : 1,
                                   .less = {lesses[i].left}};
        char from[256];
        char to[256];

        snprintf(from, sizeof(from), "script 1\ncase " MLP "\ngroups 2\n--\n%s",
                 lesses[i].from);
        snprintf(to, sizeof(to), "script 1\ncase " MLP "\ngroups 2\n--\n%s\n",
                 lesses[i].to);
        assert_masked(from, &mask, to, &kept);
    }
}

/* Without the actions whose bits are missing; `left` are those that stay. */
static const struct {
    uint64_t actions, left;
    const char *from, *to;
} keeps[] = {
    {6, 6, "look; summon; zero", "summon\nzero\n"},
    {5, 1, "look; save a full; wait a", "look\n"},
    {3, 1, "look; save a full; wait a", "look\n"},
    {0x1c, 0, "look; save a full; wait a; load a", ""},
    {0xe, 0, "look; save a full; wait b; load a", ""},
    {0xb, 1, "look; save a full; wait a; load a", "look\n"},
    {3, 1, "look; repeat 3 { pass i+4.0; look }", "look\n"},
    {7, 7, "look; repeat 3 { pass i+4.0; look }",
     "look\nrepeat 3 {\npass i+4.0\n}\n"},
    {0xb, 0xb, "look; repeat 3 { pass i+4.0; look }",
     "look\nrepeat 3 {\nlook\n}\n"},
    {0x1d, 0x1d, "look; repeat 3 { pass i+4.0; look } zero",
     "look\npass 4.0\nlook\nzero\n"},
    {0x13, 0x11, "look; repeat 3 { pass i+4.0; look } zero", "look\nzero\n"},
    {0x1f, 0x17, "look; repeat 3 { pass i+4.0 n; step lr 1 } zero",
     "look\nrepeat 3 {\npass i+4.0 n\n}\nzero\n"},
};

static void test_keeps(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(keeps); i++) {
        struct script_mask mask = {.actions = keeps[i].actions};
        struct script_mask kept = {.actions = keeps[i].left};
        char from[256];
        char to[256];

        snprintf(from, sizeof(from), "script 1\ncase " MLP "\n--\n%s",
                 keeps[i].from);
        snprintf(to, sizeof(to), "script 1\ncase " MLP "\n--\n%s", keeps[i].to);
        assert_masked(from, &mask, to, &kept);
    }
}

/* ---- Ids ---- */

static const char *const refused[][2] = {
    {"", "a drawn script is script.GENERATOR.SEED"},
    {"scrip.1.7", "a drawn script is"},
    {"script.1", "a drawn script is"},
    {"script.1.", "a drawn script is"},
    {"script.1.x", "a drawn script is"},
    {"script.2.7", "another generator"},
    {"script.1.18446744073709551616", "a drawn script is"},
    {"script.1.07", "what it keeps is that of script.1.7"},
    {"script.1.7 ", "behind the seed is .ACTIONS-PLAIN"},
    {"script.1.7.", "behind the seed"},
    {"script.1.7.1", "behind the seed"},
    {"script.1.7.1-", "behind the seed"},
    {"script.1.7.1-0-", "what it keeps is that of script.1.7.1-0"},
    {"script.1.7.1-0-0", "what it keeps is that of"},
    {"script.1.7.1-20000", "behind the seed"},
    {"script.1.7.1-0-1234", "behind the seed"},
    {"script.1.7.1-0-g", "behind the seed"},
    {"script.1.7.01-0", "what it keeps is that of script.1.7.1-0"},
    {"script.1.7.ffffffffffffffff-0", "what it keeps is that of script.1.7"},
    {"script.1.7.1ffffffffffffffff-0", "behind the seed"},
    {"script.1.7.A-0", "behind the seed"},
};

static void test_ids(void **state)
{
    struct fsdp_error error = {0};
    struct script s;

    (void)state;
    for (size_t i = 0; i < N_OF(refused); i++) {
        error = (struct fsdp_error){0};
        if (script_of_id(refused[i][0], &s, NULL, NULL, &error) !=
                FSDP_ERR_FORMAT ||
            !strstr(error.message, refused[i][1])) {
            fail_msg("%s: %s", refused[i][0], error.message);
        }
        script_release(&s);
    }
    assert_int_equal(
        script_of_id("script.1.18446744073709551615", &s, NULL, NULL, &error),
        FSDP_OK);
    script_release(&s);
}

/* The longest: all actions are kept, and all say less. */
static void test_longest(void **state)
{
    struct script s;
    struct script_mask mask = {.actions = (1ull << SCRIPT_MOST_DRAWN) - 1,
                               .plain = (1u << SCRIPT_N_PLAIN) - 1};
    char id[SCRIPT_ID_BYTES];

    (void)state;
    draw(0, &s);
    memset(mask.less, 15, sizeof(mask.less));
    script_id(UINT64_MAX, &s, &mask, id);
    assert_true(strlen(id) < SCRIPT_ID_BYTES - 1);
    assert_int_equal(id[strlen(id) - 1], 'f');
    assert_int_equal(strlen(id), 7 + 2 + 20 + 1 + 15 + 1 + 5 + 1 + 60);
    script_release(&s);
}

/* ---- Claims ---- */

static const char *const core[] = {"flat", "full-shard", "fold-rank", "sgd",
                                   NULL};

static void project(uint64_t seed, const char *const *claims, uint32_t least)
{
    struct fsdp_error error = {0};
    struct script_mask mask;
    struct script s;
    struct script left;

    draw(seed, &s);
    if (script_project(&s, claims, &mask, &error) != FSDP_OK) {
        fail_msg("seed %llu: %s", (unsigned long long)seed, error.message);
    }
    assert_int_equal(script_masked(&s, &mask, &left, NULL, &error), FSDP_OK);
    assert_legal(&left, seed);
    assert_null(script_unclaimed(&left, claims));
    assert_in_range(left.n_actions, least, s.n_actions);
    assert_mask(seed, &s, &mask);
    script_release(&left);
    script_release(&s);
}

/* All claims that scripts know, but for one. */
static uint32_t all_but(const char *one, const char *list[64])
{
    uint32_t n = 0;

    for (const struct claim *q = known_claims; q->name; q++) {
        if (q->group != CLAIM_ADAPTER && strcmp(q->name, one) != 0) {
            list[n++] = q->name;
        }
    }
    list[n] = NULL;
    return n;
}

static void test_core(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        project(seed, core, SCRIPT_LEAST_CORE);
    }
}

static void test_all_but_one(void **state)
{
    const char *list[64];

    (void)state;
    for (const struct claim *q = known_claims; q->name; q++) {
        if (q->group == CLAIM_ENGINE) {
            (void)all_but(q->name, list);
            for (uint64_t seed = 0; seed < 60; seed++) {
                project(seed, list, 1);
            }
        }
    }
}

/* With these, some calls that scripts have are right. */
static void all_but_dtypes(const char *list[64])
{
    const uint32_t all = all_but("bf16", list);
    uint32_t n = 0;

    for (uint32_t i = 0; i < all; i++) {
        if (strcmp(list[i], "fp16") != 0) {
            list[n++] = list[i];
        }
    }
    list[n] = NULL;
}

/* An engine that claims everything is asked for everything. */
static void test_everything(void **state)
{
    const char *list[64];

    (void)state;
    all_but_dtypes(list);
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct fsdp_error error = {0};
        struct script_mask all;
        struct script_mask mask;
        struct script s;

        draw(seed, &s);
        script_mask_all(&s, &all);
        assert_null(script_unclaimed(&s, list));
        assert_int_equal(script_project(&s, list, &mask, &error), FSDP_OK);
        assert_true(script_mask_same(&all, &mask));
        script_release(&s);
    }
}

static void test_not_even_core(void **state)
{
    static const char *const claims[] = {"full-shard", "fold-rank", "sgd",
                                         NULL};
    struct fsdp_error error = {0};
    struct script_mask mask;
    struct script s;

    (void)state;
    draw(1, &s);
    assert_int_equal(script_project(&s, claims, &mask, &error),
                     FSDP_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "needs the claim flat"));
    script_release(&s);
}

/* Each of these needs just this one beyond the core. */
static const struct {
    const char *actions, *claim;
} needs[] = {
    {"pass 0.0 s; step lr 1; zero; look; again; anew", NULL},
    {"pass 0.0 n", "no-sync"},
    {"sync off", "no-sync"},
    {"pass 0.0 at 0 sync off", "no-sync"},
    {"pass 0.0 at 0 sync on", NULL},
    {"eval 0.0", "eval"},
    {"pass 0.0 until 0", "cancel"},
    {"pass 0.0 left-open 0", NULL},
    {"clip 1 p 2", "clip"},
    {"! clip-to-zero", "clip"},
    {"pass 0.0 at 0 ! clip-in-pass", "clip"},
    {"unshard; reshard", "unshard-all"},
    {"summon", "unshard-all"},
    {"save a full", "save-full"},
    {"save a local", "save-local"},
    {"save a sharded", "save-sharded"},
    {"! wait-before-save", "save-sharded"},
    {"load a", "load"},
    {"! prefetch-forward-beyond", "prefetch"},
    {"pass 0.0 at 0 ! end-early", NULL},
};

static void test_needs(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(needs); i++) {
        struct fsdp_error error = {0};
        struct script s;
        const char *claim;
        char text[128];

        snprintf(text, sizeof(text), "script 1\n--\n%s", needs[i].actions);
        assert_int_equal(script_parse(text, &s, &error), FSDP_OK);
        claim = script_unclaimed(&s, core);
        if (strcmp(claim ? claim : "", needs[i].claim ? needs[i].claim : "") !=
            0) {
            fail_msg("%s: %s", needs[i].actions, claim ? claim : "nothing");
        }
        script_release(&s);
    }
}

/* Whether a case that plays it is found to need the claim. */
static bool case_needs(const char *text, const char *claim)
{
    const struct case_script *given;
    const char *list[CASE_MAX_CLAIMS];
    struct fsdp_error error = {0};
    struct run_case c;
    uint32_t n;
    bool needs_it = false;

    assert_true(
        case_of_id("mlp.odd.natural.full-shard.k2.flat.layer.rank.s.sgd", &c));
    assert_int_equal(script_give(text, &given, &error), FSDP_OK);
    case_play_script(&c, given);
    n = case_claims(&c, list);
    assert_in_range(n, 4, CASE_MAX_CLAIMS);
    for (uint32_t i = 0; i < n; i++) {
        needs_it = needs_it || strcmp(list[i], claim) == 0;
    }
    return needs_it;
}

/* What a call that must be refused needs, a case needs that makes it. */
static void test_cases_need_the_same(void **state)
{
    (void)state;
    for (uint32_t call = 0; call < SCRIPT_N_CALLS; call++) {
        struct fsdp_error error = {0};
        struct script s;
        const char *claim;
        char text[64];

        snprintf(text, sizeof(text), "script 1\n--\n! %s",
                 script_calls[call].name);
        assert_int_equal(script_parse(text, &s, &error), FSDP_OK);
        claim = script_unclaimed(&s, core);
        if (claim && !case_needs(text, claim)) {
            fail_msg("%s: %s", text, claim);
        }
        script_release(&s);
    }
    assert_true(case_needs("script 1\ngroups 2\n--\npass 0.0 n\neval 0.0\n"
                           "pass 0.1 s until 1\nsummon\nclip 1 p 2\n"
                           "save a full\nsave a local\nsave a sharded\n"
                           "load a\n! reduces-beyond\n",
                           "prefetch"));
}

/* Calls that one claim makes right are left out for who has it, and asked of
 * who has not. */
static void test_allowed(void **state)
{
    static const struct {
        const char *call, *claim;
    } row[] = {
        {"unclaimed-dtype", "bf16"},
        {"unclaimed-reduce-bf16", "bf16"},
        {"unclaimed-param-of-unit", "bf16"},
        {"unclaimed-reduce-of-unit", "bf16"},
        {"unclaimed-param-f16", "fp16"},
        {"unclaimed-reduce-f16", "fp16"},
    };

    (void)state;
    for (size_t i = 0; i < N_OF(row); i++) {
        const char *claims[] = {"bf16", NULL};
        const bool forbids = strcmp(row[i].claim, claims[0]) == 0;
        struct fsdp_error error = {0};
        struct script s;
        char text[64];

        snprintf(text, sizeof(text), "script 1\n--\n! %s", row[i].call);
        assert_int_equal(script_parse(text, &s, &error), FSDP_OK);
        assert_null(script_unclaimed(&s, core));
        assert_int_equal(script_unclaimed(&s, claims) != NULL, forbids);
        claims[0] = "fp16";
        assert_int_equal(script_unclaimed(&s, claims) != NULL, !forbids);
        script_release(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_less),
        cmocka_unit_test(test_keeps),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_longest),
        cmocka_unit_test(test_core),
        cmocka_unit_test(test_all_but_one),
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_not_even_core),
        cmocka_unit_test(test_needs),
        cmocka_unit_test(test_allowed),
        cmocka_unit_test(test_cases_need_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
