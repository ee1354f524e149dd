/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_plain_test.c - what each bit of a mask does: a choice that becomes
 * plain, an action that says less, an action that goes.
 */
#include "script/script_mask.h"
#include "testing/unit_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

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
    /* No further ahead than there are units. */
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
    {SCRIPT_PLAIN_PRECISION, MIXED ".sgd.units", "look\n", MIXED ".sgd",
     "look\n"},
    {SCRIPT_PLAIN_PRECISION, MLP, "look\n", NULL, NULL},
    {SCRIPT_PLAIN_SCALE, MLP "\nscale 2^9 every 2", "pass 0.0 inf\n", MLP,
     "pass 0.0 inf\n"},
    {SCRIPT_PLAIN_SCALE, MLP, "look\n", NULL, NULL},
    {SCRIPT_PLAIN_RECOMPUTE, MLP ".recompute-pair", "look\n", MLP, "look\n"},
    {SCRIPT_PLAIN_FROZEN, MIXED ".sgd.frozen-matrices", "look\n", MIXED ".sgd",
     "look\n"},
    {SCRIPT_PLAIN_FACTORS, MLP ".unit-factors", "look\n", MLP, "look\n"},
    {SCRIPT_PLAIN_FACTORS, MLP ".pre2", "look\n", MLP, "look\n"},
    {SCRIPT_PLAIN_SAME,
     MIXED ".adamw\nbetas 0.5,0.25 0.75\neps 0.25,0.5\ngroups 2", "look\n",
     MIXED ".adamw\nbetas 0.5 0.75\neps 0.25\ngroups 2", "look\n"},
    {SCRIPT_PLAIN_SAME, MIXED ".adamw\nbetas 0.5 0.75\ngroups 2", "look\n",
     NULL, NULL},
    {SCRIPT_PLAIN_GROUPS, MIXED ".adamw\nbetas 0.5,0.25 0.75\ngroups 2",
     "step lr 1,2\n", MIXED ".adamw\nbetas 0.5 0.75", "step lr 1\n"},
    /* A choice that the other model does not offer becomes one that it does. */
    {SCRIPT_PLAIN_MODEL,
     "gpt.odd.natural.full-shard.k4.flat.layer.rank.s.sgd.recompute-block",
     "look\n", MLP ".recompute-around", "look\n"},
    {SCRIPT_PLAIN_MODEL,
     "gpt.odd.natural.full-shard.k4.flat.layer.rank.s.sgd.frozen-matrices",
     "look\n", MLP ".frozen-prefix", "look\n"},
    {SCRIPT_PLAIN_OFFLOAD, MLP ".offload-some", "look\n", MLP, "look\n"},
    {SCRIPT_PLAIN_VALUES, MLP "\nrank0", "look\n", MLP, "look\n"},
    {SCRIPT_PLAIN_VALUES | SCRIPT_PLAIN_OFFLOAD, MLP, "look\n", NULL, NULL},
    /* An action that becomes illegal goes. */
    {SCRIPT_PLAIN_SCALE, MLP "\nscale 2^9",
     "look\npass 0.0 inf\nstep lr 1\nzero\npass 0.0\nclip 1 p 1 strict\n", MLP,
     "look\npass 0.0 inf\nstep lr 1\nzero\npass 0.0\n"},
    {SCRIPT_PLAIN_FOLD, "mlp.seed.natural.full-shard.k4.flat.layer.tree.s.sgd",
     "look\nanew k2 full-shard\n", MLP, "look\n"},
};

UNIT_TEST(test_plain)
{
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
    {SCRIPT_LESS_RATES, SCRIPT_LESS_RATES, "backward-step lr 1,2",
     "backward-step lr 1"},
    {SCRIPT_LESS_SLICE, SCRIPT_LESS_SLICE, "assign all 7 by 3", "assign all 7"},
    {SCRIPT_LESS_SOURCE, SCRIPT_LESS_SOURCE, "assign 1 7 by 3",
     "assign 1 initial by 3"},
    {15, 0, "assign all initial", "assign all initial"},
    {15, 0, "sync off", "sync off"},
};

UNIT_TEST(test_less)
{
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

UNIT_TEST(test_keeps)
{
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_less),
        cmocka_unit_test(test_keeps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
