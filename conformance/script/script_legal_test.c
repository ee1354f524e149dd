/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_legal_test.c - which calls of a script may follow which, in which
 * worlds, and which calls must be refused where.
 */
#include "script/script_testing.h"
#include "testing/unit_testing.h"

#include <stdio.h>
#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))
#define TREE        "mlp.seed.natural.full-shard.k4.flat.layer.tree.s.sgd"
#define RANK        "mlp.seed.natural.full-shard.k4.flat.layer.rank.s.sgd"
#define HYBRID      "mlp.seed.natural.hybrid-shard.k4r2.flat."

/* A sequence for training has 8 points here, for evaluation 4. */
static const uint32_t lengths[2] = {8, 4};

static const struct {
    const char *actions;
    const char *why; /* NULL: legal */
} followed[] = {
    {"pass 0.0; step lr 1; zero", NULL},
    {"step lr 1", NULL},
    {"zero; clip 1 p 2; look; summon", NULL},
    {"pass 0.0 n; look; summon; zero; step lr 1", NULL},
    {"pass 0.0 n; step lr 1", "action 2 (step lr 1): it is refused while"},
    {"pass 0.0 n; clip 1 p 2", "action 2 (clip 1 p 2): it is refused while"},
    {"pass 0.0 n; pass 0.1 s; step lr 1", NULL},
    {"pass 0.0 s; pass 0.1 n; step lr 1", "action 3"},
    {"sync off; pass 0.0; step lr 1", "action 3"},
    {"pass 0.0 s at 3 sync off; step lr 1; pass 1.0; step lr 1", "action 4"},
    {"pass 0.0 n; eval 0.0; step lr 1", "action 3"},
    {"pass 0.0 n; pass 0.1 until 0; step lr 1", NULL},
    {"pass 0.0 until 8", NULL},
    {"pass 0.0 until 9", "the pass is not as long"},
    {"eval 0.0 until 5", "the pass is not as long"},
    {"pass 0.0 at 5 sync on until 4", "does not get to that place"},
    {"clip 0 p 2", "above 0"},
    {"clip 1 p 3", "p is 1, 2 or inf"},
    {"pass 0.0; save a full", "while there are gradients"},
    {"pass 0.0 n; zero; save a full; wait a; load a", NULL},
    {"save a full; save b full", "another has not been waited for"},
    {"save a full; wait b", "this slot is not being saved"},
    {"wait a", "this slot is not being saved"},
    {"save a full; load a", "a load is refused while"},
    {"save a full; again; zero", "a save has not been waited for"},
    {"save a full", "the end): a save has not been waited for"},
    {"load a", "has not been saved"},
    {"save a full; wait a; save b full; wait b same c", "compared with"},
    {"save a full; wait a; again; load a", NULL},
    {"pass 0.0 n; save a full", "while there are gradients"},
    {"save a full; wait a; pass 0.0 n; load a; step lr 1", NULL},
    {"pass 0.0 left-open 3; again; zero", NULL},
    {"pass 0.0 left-open 3; zero", "left open"},
    {"save a full; pass 0.0 left-open 3", "`wait` comes first"},
    /* Calls that must be refused, and those that must not. */
    {"! param-at-rest; pass 0.0 at 0 ! step-in-pass at 8 ! clip-in-pass", NULL},
    {"! step-in-pass", "nothing says that step-in-pass is refused here"},
    {"pass 0.0 at 2 ! param-at-rest", "nothing says"},
    {"pass 0.0 at 7 ! end-early at 8 ! point-after-last", NULL},
    {"pass 0.0 at 8 ! end-early", "nothing says"},
    {"pass 0.0 at 7 ! point-after-last", "nothing says"},
    {"eval 0.0 at 4 ! end-of-another", "nothing says"},
    {"pass 0.0 n; ! step-with-pending", NULL},
    {"pass 0.0 s; ! step-with-pending", "nothing says"},
    {"pass 0.0 s; ! save-with-gradients", NULL},
    {"! save-with-gradients", "nothing says"},
    {"! wait-before-save; save a full; ! save-twice; wait a", NULL},
    {"save a full; ! wait-before-save; wait a", "nothing says"},
    {"! save-twice", "nothing says"},
    {"! load-damaged", "nothing says"},
    {"save a full; wait a; ! load-damaged", NULL},
    {"save a full; wait a; ! load-damaged; load a", "has been damaged"},
    {"save a full; ! load-while-saving; wait a", NULL},
    {"! load-while-saving", "it is between save and wait"},
    {"pass 0.0 at 0 ! zero-in-pass; ! reshard-all-at-rest", NULL},
    {"! zero-in-pass", "it is in a pass (`at PLACE ! ...`)"},
    /* Everything unsharded. */
    {"unshard; sync off; reshard; pass 0.0; step lr 1", "action 5"},
    {"reshard", "`unshard` comes first"},
    {"unshard; unshard", "action 2 (unshard): everything is unsharded"},
    {"unshard; summon", "everything is unsharded"},
    {"unshard; look", "everything is unsharded"},
    {"unshard; step lr 1", "everything is unsharded"},
    {"unshard; pass 0.0", "`reshard` comes first"},
    {"unshard; ! step-while-open; ! unshard-all-twice; ! load-while-open",
     NULL},
    {"! step-while-open", "it is between unshard and reshard"},
    {"unshard; ! param-at-rest", "nothing says"},
    {"unshard 0; ! param-after-cancel", "a unit may be unsharded"},
    {"unshard 0; step lr 1; ! param-after-cancel; ! param-at-rest", NULL},
    {"! freeze-unknown-parameter; pass 0.0 s; zero; ! freeze-by-two", NULL},
    {"pass 0.0 s; ! freeze-unknown-parameter", "nothing says"},
    {"save a full; ! freeze-by-two; wait a", "nothing says"},
    {"freeze all; pass 0.0 s; ! freeze-with-gradients", "nothing says"},
    {"set 0 divide-factor 3; pass 0.0 at 1/2 ! set-factor-in-pass", NULL},
    {"pass 0.0 n; backward-step lr 1; pass 0.1 s; save a full; wait a", NULL},
    {"backward-step lr 1; pass 0.0 n; ! step-with-pending", NULL},
    {"pass 0.0 s; backward-step lr 1; pass 0.1 n; ! save-with-gradients", NULL},
    {"pass 0.0 s; backward-step lr 1; eval 1.0; step lr 1", NULL},
    {"backward-step lr 1; pass 0.0 s until 1/2; step lr 1", NULL},
    {"backward-step lr 1; zero; ! backward-step-then-step; again; step lr 1",
     NULL},
    {"backward-step lr 1; step lr 1", "has been given a step"},
    {"backward-step lr 1; clip 1 p 2", "has been given a step"},
    {"backward-step lr 1; pass 0.0 left-open 1", "steps for nobody"},
    {"backward-step lr 1; pass 0.0 s; ! save-with-gradients", "nothing says"},
    {"backward-step lr 1; pass 0.0 s; ! backward-step-then-clip",
     "nothing says"},
    {"unshard; backward-step lr 1", "everything is unsharded"},
    {"pass 0.0 n; assign 0 1 by 7; ! step-with-pending; pass 0.1 s", NULL},
    {"summon; step lr 1; assign all summoned; again; assign all initial", NULL},
    {"unshard 0; assign 0 1; ! param-at-rest; save a full; assign 1 2; wait a",
     NULL},
    {"assign all summoned", "nothing was summoned in this life"},
    {"summon; again; assign 0 summoned", "nothing was summoned in this life"},
    {"unshard; assign 0 1", "everything is unsharded"},
    {"pass 0.0 n; send 0 1; ! send-lacking; pass 0.1 s; send all 2; step lr 1; "
     "zero; "
     "save a full; send 1 initial; wait a; summon; send all summoned",
     NULL},
    {"send all summoned", "nothing was summoned in this life"},
    {"unshard; ! send-while-open; send 0 1", "everything is unsharded"},
    {"unshard; ! send-none", "nothing says that send-none is refused here"},
    {"pass 0.0 s at 0 ! send-in-pass at 1/1 ! send-in-pass; ! send-in-pass",
     "nothing says that send-in-pass is refused here"},
    {"unshard 0; summon 1; ! param-at-rest; pass 0.0 n; summon all rank0",
     NULL},
    {"unshard; summon 0 rank0", "everything is unsharded"},
    {"summon 0; assign all summoned", "nothing was summoned in this life"},
    {"save a full; wait a; again renamed 1; ! load-renamed; load a lenient; "
     "again; load a; ! load-damaged",
     NULL},
    {"save a full; wait a; again renamed 1; load a", "has another name"},
    {"save a full of states; wait a; load a", "a part was left out"},
    {"save a full of states; wait a; load a lenient; ! save-unknown-part",
     NULL},
    {"save a full of parameters states buffers; wait a; load a", NULL},
    {"save a full of states; wait a; ! load-parts; load a lenient", NULL},
    {"save a full of parameters; wait a; ! load-parts", "nothing says"},
    {"save a local of states; wait a; ! load-parts", "nothing says"},
    {"save a full in bf16; wait a; ! load-rounded; load a lenient; "
     "! save-unknown-dtype; ! save-rounded-shards",
     NULL},
    {"save a full in fp16; wait a; load a", "were rounded"},
    {"save a sharded in fp16", "in the full form alone"},
    {"save a full; wait a; ! load-rounded", "nothing says"},
    {"save a local; wait a; load a lenient", NULL},
    {"save a local; wait a; again renamed 0; load a lenient",
     "has another name"},
    {"again renamed 1; save a full; wait a; again; ! load-renamed", NULL},
    {"again renamed 1; save a full; wait a; again renamed 2; ! load-renamed",
     "nothing says"},
    {"save a full; wait a; load a lenient; ! load-renamed", "nothing says"},
    {"freeze 1; save a full; wait a; thaw 1; ! load-without-states; load a "
     "lenient",
     NULL},
    {"! summon-unknown-unit; unshard; ! summon-while-open; reshard", NULL},
    {"summon 0; ! summon-while-open", "nothing says"},
    {"! set-divide-to-zero; ! set-predivide-tiny; ! set-factor-in-pass",
     "nothing says"},
    {"set 1 predivide-factor 256; ! set-divide-of-all", NULL},
    {"set all predivide-factor 256; set 1 predivide-factor 1; "
     "! set-divide-of-all",
     NULL},
    {"set 1 predivide-factor 256; set all predivide-factor 255; "
     "! set-divide-of-all",
     "256 or more"},
    {"set 1 predivide-factor 256; again; ! set-divide-of-all", "256 or more"},
    {"set 1 divide-factor 256; ! set-divide-of-all", "256 or more"},
    {"set all reshard-after-forward 0; pass 0.0 at 1/2 ! reshard-kept", NULL},
    {"set all reshard-after-forward 0; eval 0.0 at 1/2 ! reshard-kept",
     "nothing says"},
    {"set all reshard-after-forward 0; pass 0.0 at 3/8 ! reshard-kept",
     "nothing says"},
    {"set all reshard-after-forward 0; set 1 reshard-after-forward 1; pass 0.0 "
     "at 1/2 ! reshard-kept",
     "half way"},
    {"set 0 reshard-after-forward 0; pass 0.0 at 1/2 ! reshard-kept",
     "nothing says"},
    {"unshard; reshard; ! pieces-while-open", "nothing says"},
    {"save a full; unshard; wait a; again; load a", NULL},
    {"unshard; anew; pass 0.0", NULL},
    {"unshard", NULL},
    /* What is not finite. */
    {"pass 0.0 inf; ! clip-nonfinite; zero; pass 0.1; clip 1 p 2 strict", NULL},
    {"pass 0.0 inf; clip inf p 1", NULL},
    {"pass 0.0 inf; clip 1 p 2 strict", "`! clip-nonfinite` says so"},
    {"pass 0.0 nan rank 1; ! clip-nonfinite", NULL},
    {"pass 0.0 inf element 7; ! clip-nonfinite", NULL},
    {"pass 0.0 inf param 1; ! clip-nonfinite", "it is where an edit of all"},
    {"pass 0.0 inf param 1; clip 1 p 2 strict", "is not known here"},
    {"pass 0.0 times 2^1; clip 1 p 2 strict", "is not known here"},
    {"pass 0.0 times 2^-139; clip 1 p 2 strict", NULL},
    {"pass 0.0 times 2^0; clip 1 p 2 strict", NULL},
    {"pass 0.0 inf times 2^-9; ! clip-nonfinite", "nothing says"},
    {"pass 0.0 inf; pass 0.1; ! clip-nonfinite", NULL},
    {"sync off; again; pass 0.0; step lr 1", NULL},
    {"pass 0.0 n; again; step lr 1", NULL},
    {"pass 0.0 s; again; save a full; wait a", NULL},
    {"pass 0.0 inf; again; clip 1 p 2 strict", NULL},
    {"pass 0.0 inf; step lr 1; again; clip 1 p 2 strict", NULL},
    {"unshard; again; look", NULL},
    {"save a full; wait a; wait a", "is not being saved"},
    {"pass 0.0 inf set zero; ! clip-nonfinite", "nothing says"},
    {"pass 0.0 set tie; clip 1 p 2 strict", NULL},
    {"pass 0.0 n inf; ! clip-nonfinite", "nothing says"},
    {"pass 0.0 n inf; pass 0.1 s; ! clip-nonfinite", NULL},
    {"pass 0.0 inf until 1; pass 0.0; clip 1 p 2 strict", NULL},
    {"pass 0.0 inf; step lr 1; zero; pass 0.0; clip 1 p 2 strict",
     "is not known here"},
    {"save a full; wait a; pass 0.0 inf; step lr 1; load a; pass 0.0; "
     "clip 1 p 2 strict",
     NULL},
    {"pass 0.0 inf; step lr 1; zero; save a full; wait a; again; load a; "
     "pass 0.0; clip 1 p 2 strict",
     "is not known here"},
    {"pass 0.0 inf; step lr 1; anew; pass 0.0; clip 1 p 2 strict", NULL},
    /* Other worlds. */
    {"save a full; wait a; anew; load a", NULL},
    {"save a full; anew", "`wait` comes first"},
    {"pass 0.0 left-open 3; anew; zero", NULL},
    {"anew k4 full-shard", "needs the setting `case`"},
    {"again; ! unknown-layout", "before the first life"},
    {"! unknown-layout; ! shard; zero", NULL},
    {"zero; ! unknown-layout", "before the first life"},
};

UNIT_TEST(test_legal)
{
    for (size_t i = 0; i < N_OF(followed); i++) {
        struct fsdp_error error = {0};
        struct script s;
        char text[256];
        int status;

        snprintf(text, sizeof(text), HEAD "%s", followed[i].actions);
        script_test_parse(text, &s);
        status = script_legal(&s, lengths, &error);
        if (status != (followed[i].why ? FSDP_ERR_INVALID : FSDP_OK) ||
            (followed[i].why && !strstr(error.message, followed[i].why))) {
            fail_msg("%s\nsays: %s\nnot: %s", followed[i].actions,
                     error.message, followed[i].why ? followed[i].why : "");
        }
        script_release(&s);
    }
}

#define EMPTY                                                               \
    "graph.random.natural.full-shard.k2.flat.drawn.rank.s.sgd.seed948282\n" \
    "deferred"

static const char ties[] =
    "graph.ties.natural.full-shard.k1.flat.drawn.rank.s.sgd.seed360376";

/* The same for scripts that have a case. */
static const struct {
    const char *id, *actions, *why;
} worlds[] = {
    {TREE, "save a full; wait a; anew k8r2 hybrid-shard pair; load a", NULL},
    {TREE, "anew k1 full-shard; anew k4 no-shard; pass 0.0", NULL},
    {TREE, "anew k16 full-shard", "if the grains stay"},
    {TREE, "anew k3 full-shard", "fold tree has 8 grains"},
    {TREE, "anew k4r3 hybrid-shard", "replicas"},
    {TREE, "anew k4 full-shard drawn", "drawn with the model"},
    {RANK, "anew k4 shard-grad-op whole", NULL},
    {RANK, "anew k2 full-shard", "under fold tree the ranks may change"},
    {RANK, "anew k4 no-shard", "under fold tree the ranks may change"},
    {TREE, "pass 0.1", "they count from 0"},
    {"mlp.seed.natural.full-shard.k4.flat.layer.tree.ss.sgd", "pass 0.1", NULL},
    {"mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd",
     "! shard; ! shard-units", NULL},
    {TREE,
     "pass 0.0 inf; step lr 1; zero; save a full; wait a; again; save a full; "
     "wait a; load a; clip 1 p 2 strict",
     NULL},
    {"mlp.seed.natural.full-shard.k1.flat.layer.rank.s.sgd", "! shard",
     "one rank cannot disagree"},
    {"mlp.seed.natural.full-shard.k1.flat.layer.rank.s.sgd", "! shard-units",
     "one rank cannot disagree"},
    {"graph.random.natural.full-shard.k4.flat.drawn.tree.s.sgd",
     "anew k2 full-shard", NULL},
    {"graph.random.natural.full-shard.k4.flat.drawn.tree.s.sgd",
     "anew k2 full-shard layer", "drawn with the model"},
    {"mlp.seed.natural.full-shard.k4.flat.layer.ring.s.sgd",
     "anew k4 shard-grad-op", NULL},
    {"mlp.seed.natural.full-shard.k4.flat.layer.ring.s.sgd",
     "anew k4 shard-grad-op pair", "else the strategy alone"},
    {TREE, "save a local; wait a; anew; load a", NULL},
    {TREE, "save a local; wait a; anew k4 shard-grad-op; load a", NULL},
    {TREE, "save a local; wait a; anew k8r2 hybrid-shard; load a", NULL},
    {TREE, "save a local; wait a; anew k4 full-shard pair; load a",
     "wrap and shard degree"},
    {TREE, "save a local; wait a; anew k2 full-shard; load a",
     "wrap and shard degree"},
    {TREE, "save a sharded; wait a; anew k2 full-shard; load a", NULL},
    /* In 16 bits other ranks round otherwise; options of single units depend on
     * the wrap. */
    {TREE ".bf16", "anew k2 full-shard", "the ranks stay"},
    {TREE ".bf16", "anew k4 shard-grad-op pair", NULL},
    {TREE ".pre2", "anew k2 full-shard", "the ranks stay"},
    {RANK ".units", "anew k4 shard-grad-op pair", "the ranks stay"},
    {RANK ".unit-factors", "anew k4 shard-grad-op pair", "the ranks stay"},
    {RANK ".unit-factors", "anew k4 shard-grad-op", NULL},
    {RANK ".bf16", "pass 0.0; clip 1 p 2 strict", NULL},
    {RANK ".fp16", "pass 0.0; clip 1 p 2 strict", "is not known here"},
    {RANK ".units", "pass 0.0; clip 1 p 2 strict", "is not known here"},
    {RANK ".frozen-prefix", "! shard-frozen; pass 0.0 at 3/4 ! grad-of-frozen",
     NULL},
    {"mlp.seed.natural.full-shard.k1.flat.layer.rank.s.sgd", "! shard-frozen",
     "one rank cannot disagree"},
    /* All units but the first are set to 0: in a model with one unit none
     * is. */
    {HYBRID "layer.rank.s.sgd",
     "set all all-reduce 0; set 0 all-reduce 1; pass 0.0; ! clip-with-partials",
     NULL},
    {HYBRID "whole.rank.s.sgd",
     "set all all-reduce 0; set 0 all-reduce 1; pass 0.0; ! clip-with-partials",
     "nothing says"},
    {HYBRID "whole.rank.s.sgd",
     "set all sync 0; set 0 sync 1; pass 0.0; ! step-with-pending",
     "nothing says"},
    {HYBRID "whole.rank.s.sgd",
     "set all all-reduce 0; pass 0.0; ! step-with-partials", NULL},
    /* The other parameter of this graph has no elements. */
    {EMPTY, "! deferred-unshard-all; ! deferred-pieces", NULL},
    {EMPTY, "assign 1 initial; ! deferred-unshard-all", NULL},
    {EMPTY, "assign 0 initial; ! deferred-unshard-all", "nothing says"},
    {EMPTY, "send 0 initial; ! deferred-begin", "nothing says"},
    /* Parameter 4 is another name of one, under which it is saved. */
    {ties, "save a sharded; wait a; again renamed 3; ! load-renamed", NULL},
    {ties, "save a sharded; wait a; again renamed 4; ! load-renamed",
     "nothing says"},
};

UNIT_TEST(test_worlds)
{
    for (size_t i = 0; i < N_OF(worlds); i++) {
        struct fsdp_error error = {0};
        struct script s;
        char text[512];
        int status;

        snprintf(text, sizeof(text), "script 1\ncase %s\n--\n%s", worlds[i].id,
                 worlds[i].actions);
        script_test_parse(text, &s);
        status = script_legal(&s, NULL, &error);
        if (status != (worlds[i].why ? FSDP_ERR_INVALID : FSDP_OK) ||
            (worlds[i].why && !strstr(error.message, worlds[i].why))) {
            fail_msg("%s\nsays: %s\nnot: %s", text, error.message,
                     worlds[i].why ? worlds[i].why : "");
        }
        script_release(&s);
    }
}

/* A step that is skipped leaves finite values, so that a strict clip is legal.
 * The scale itself is kept in this process. A step in backward is made where
 * the unsharded run can follow. */
UNIT_TEST(test_settings)
{
    static const struct {
        const char *settings, *actions, *why;
    } row[] = {
        {"", "pass 0.0 inf; step lr 1; zero; pass 0.1; clip 1 p 2 strict",
         "whether the norm is finite is not known"},
        {"scale 2^4\n",
         "pass 0.0 inf; step lr 1; zero; pass 0.1; clip 1 p 2 strict", NULL},
        /* Gradients of a huge weight may not be finite in the next pass, and
         * are stepped. */
        {"scale 2^4\n",
         "pass 0.0 times 2^9; step lr 1; zero; pass 0.1; clip 1 p 2 strict",
         "whether the norm is finite is not known"},
        {"scale 2^32\n", "pass 0.0; clip 1 p 2 strict", NULL},
        {"scale 2^33\n", "pass 0.0; clip 1 p 2 strict", "is not known"},
        {"scale 2^4 every 9\n", "pass 0.0; clip 1 p 2 strict", "is not known"},
        {"scale 2^16\n", "pass 0.0 s; ! clip-overflow; clip 1 p 2", NULL},
        {"scale 2^32\n", "pass 0.0 n; pass 0.1 s; ! clip-overflow", NULL},
        {"scale 2^15\n", "pass 0.0 s; ! clip-overflow", "2^16 or more"},
        {"scale 2^33\n", "pass 0.0 s; ! clip-overflow", "nothing says"},
        {"scale 2^16 every 9\n", "pass 0.0 s; ! clip-overflow", "that stays"},
        {"scale 2^16\n", "! clip-overflow", "nothing says"},
        {"scale 2^16\n", "pass 0.0 s; zero; ! clip-overflow", "nothing says"},
        {"scale 2^16\n", "pass 0.0 n; ! clip-overflow", "nothing says"},
        {"scale 2^16\n", "pass 0.0 s set zero; ! clip-overflow", "was edited"},
        {"scale 2^16\n", "pass 0.0 s; clip 1 p 2; ! clip-overflow",
         "or clipped"},
        {"scale 2^16\n", "freeze 0; pass 0.0 s; ! clip-overflow", "frozen"},
        {"", "pass 0.0 s; ! clip-overflow", "nothing says"},
        {"scale 2^4\n", "zero; again; zero", NULL},
        {"scale 2^4\n", "zero; anew; zero", "keeps the scale"},
        {"case mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd\n",
         "backward-step lr 1; pass 0.0 until 1/2", NULL},
        {"case mlp.seed.natural.full-shard.k2.flat.layer.rank.s.sgd."
         "recompute-half\n",
         "backward-step lr 1; pass 0.0 until 1/2", "is recomputed is whole"},
    };

    for (size_t i = 0; i < N_OF(row); i++) {
        struct fsdp_error error = {0};
        struct script s;
        char text[256];

        snprintf(text, sizeof(text), "script 1\n%s--\n%s", row[i].settings,
                 row[i].actions);
        script_test_parse(text, &s);
        assert_int_equal(script_legal(&s, lengths, &error),
                         row[i].why ? FSDP_ERR_INVALID : FSDP_OK);
        assert_true(!row[i].why || strstr(error.message, row[i].why));
        script_release(&s);
    }
}

/* Sequences of which nothing is known are assumed to be long. */
UNIT_TEST(test_unknown_lengths)
{
    struct fsdp_error error = {0};
    struct script s;

    script_test_parse(
        HEAD "pass 0.0 at 7 ! end-early at 1/1 ! end-of-another until 1/1", &s);
    assert_int_equal(script_legal(&s, NULL, &error), FSDP_OK);
    script_release(&s);
}

UNIT_TEST(test_calls)
{
    for (uint32_t i = 0; i < SCRIPT_N_CALLS; i++) {
        assert_non_null(script_calls[i].name);
        assert_true(strlen(script_calls[i].name) < SCRIPT_WORD_BYTES);
        assert_true(script_calls[i].when != 0);
        for (uint32_t k = 0; k < i; k++) {
            assert_string_not_equal(script_calls[i].name, script_calls[k].name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_legal),           cmocka_unit_test(test_calls),
        cmocka_unit_test(test_worlds),          cmocka_unit_test(test_settings),
        cmocka_unit_test(test_unknown_lengths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
