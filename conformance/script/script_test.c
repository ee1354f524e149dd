/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_test.c - scripts as text: what is read and written again is the same,
 * what is wrong is named by line and action; and the scripts of all cases of
 * the manifest.
 */
#include "cases/case_model.h"
#include "models/text.h"
#include "script/script_testing.h"
#include "testing/unit_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))
#define TREE        "mlp.seed.natural.full-shard.k4.flat.layer.tree.s.sgd"
#define RANK        "mlp.seed.natural.full-shard.k4.flat.layer.rank.s.sgd"

/* ---- Text ---- */

static void assert_canonical(const char *text, const char *canonical)
{
    struct script s;
    char *written;

    script_test_parse(text, &s);
    written = script_text(&s);
    assert_non_null(written);
    assert_string_equal(written, canonical);
    free(written);
    script_release(&s);
}

UNIT_TEST(test_canonical)
{
    static const char all[] =
        "script 1\ncase " TREE "\nbetas 0.5 0.75,0.5,0.25\neps 1e-05\n"
        "momentum 0.99,0,0.5\ngroups 3\nscale 2^-126 every 7\n"
        "rank0\ngiven c\n--\n"
        "pass 0.0\n"
        "pass 12.3 n at 0 sync off at 1/2 ! begin-twice until 5/8\n"
        "eval 1.0 until 3\n"
        "pass 1.0 s at 1 sync on times 2^-139 inf rank 1 nan param 2 element 3 "
        "set zero set tie rank 63 param 0 set subnormal element 9 until 1/1\n"
        "pass 1.0 times 2^127 rank 0 times 2^0 left-open 0\n"
        "repeat 2 {\n"
        "pass i.1 s\n"
        "repeat 3 {\n"
        "pass i+7.0 s\n"
        "}\n"
        "step lr 0.1 decay 0,0.25,1e-30 finite\n"
        "step lr 0.1,0.2,0.3\n"
        "backward-step lr 0.1 decay 0,0.25,1e-30\n"
        "assign 3 initial\n"
        "assign all summoned by 7\n"
        "assign all 9999\n"
        "send 3 initial\n"
        "send all summoned\n"
        "send 63 9999\n"
        "summon\n"
        "summon 3\n"
        "again renamed 63\n"
        "load d lenient\n"
        "save a local of states\n"
        "save a full-rank0 of parameters buffers extra\n"
        "save a full of parameters in bf16\n"
        "save d full-rank0 in fp16\n"
        "summon 3 rank0\n"
        "summon all rank0\n"
        "}\n"
        "clip inf p 2 strict\n"
        "clip 0.5 p inf\n"
        "look\nzero\nsummon\nunshard\nreshard\nsync on\n"
        "anew\nanew k4 full-shard\nanew k8r2 hybrid-shard layer\n"
        "anew k3 no-shard pair\nanew k2r1 no-shard\n"
        "save a full-rank0\nwait a\nsave b local\nwait b same a\n"
        "load c\nagain\n! load-missing\n"
        "set 0 divide-factor 3\nset all predivide-factor 0.125\n"
        "pass 5.0 left-open 1\n";

    assert_canonical(all, all);
    assert_canonical("script 1;--;repeat 4{pass i.0 s;step lr 1e-1;zero}",
                     HEAD "repeat 4 {\npass i.0 s\nstep lr 0.1\nzero\n}\n");
    assert_canonical("# four\nscript 1 # version\n\n--\n\tlook # at it\r\n",
                     HEAD "look\n");
    assert_canonical("script 1\n--\nrepeat 1 { repeat 1 { zero } }",
                     HEAD "repeat 1 {\nrepeat 1 {\nzero\n}\n}\n");
}

static const struct {
    const char *text, *why; /* why: a part of the message */
} malformed[] = {
    {"", "line 1, action 0 ends too early: a script begins"},
    {"--\nzero\n", "'--'"},
    {"script 2\n--\nzero\n", "'2': only version 1"},
    {"script 1 1\n--\nzero\n", "line 1, action 0: '1'"},
    {"script 1\nzero\n", "'zero': settings are"},
    {"script 1\ngroups 9\n--\nzero\n", "'9': groups"},
    {"script 1\ngiven e\n--\nzero\n", "'e': a checkpoint is"},
    {"script 1\n--\n", "an action at least"},
    {HEAD "zero\nbegin\n", "line 4, action 2: 'begin': an action begins"},
    {"script 1\ncase mlp\n--\nzero\n", "'mlp': a case is an id"},
    {"script 1\ncase " RANK ".eval\n--\nzero\n", "without a scenario"},
    {"script 1\nbetas 0.5\n--\nzero\n", "betas are two"},
    {"script 1\nbetas 0.5 1\n--\nzero\n", "betas are two"},
    {"script 1\nbetas -0 0.5\n--\nzero\n", "betas are two"},
    {"script 1\ngroups 2\nbetas 0,1 0.5\n--\nzero\n", "betas are two"},
    {"script 1\nbetas 0,0.5 0.5\n--\nzero\n",
     "line 3, action 0: '--': betas, eps and momentum are numbers, one for "
     "all"},
    {"script 1\neps 0.5,0.25\ngroups 3\n--\nzero\n", "or one each"},
    {"script 1\nmomentum 0,0,0\ngroups 2\n--\nzero\n", "or one each"},
    {"script 1\neps 0.5,\n--\nzero\n", "eps is above 0"},
    {"script 1\neps 0\n--\nzero\n", "eps is above 0"},
    {"script 1\neps inf\n--\nzero\n", "eps is above 0"},
    {"script 1\nmomentum 2\n--\nzero\n", "momentum is from 0"},
    {HEAD "pass 0.0 times 3\n", "'3': a factor is 2^E"},
    {HEAD "pass 0.0 times 2^128\n", "'2^128': a factor"},
    {HEAD "pass 0.0 times 2^-161\n", "'2^-161': a factor"},
    {HEAD "pass 0.0 times 2^-0\n", "'2^-0': a factor"},
    {HEAD "pass 0.0 zero\n", "'zero': nothing more"},
    {HEAD "pass 0.0 set inf\n", "'inf': gradients are set zero"},
    {HEAD "pass 0.0 set\n", "gradients are set zero"},
    {HEAD "pass 0.0 inf rank 512\n", "'512': a rank is"},
    {HEAD "pass 0.0 inf param x\n", "'x': a parameter is"},
    {HEAD "pass 0.0 inf element 1 param 2\n", "'param': nothing more"},
    {HEAD "pass 0.0 set tie element 1\n", "a tie is of three"},
    {HEAD "pass 0.0 until 1/2 inf\n", "'inf': nothing more"},
    {HEAD "eval 0.0 inf\n", "'inf': nothing more"},
    {HEAD "anew full-shard\n", "'full-shard': nothing more"},
    {HEAD "anew k\n", "'k': a world is"},
    {HEAD "anew k0 full-shard\n", "'k0': a world is"},
    {HEAD "anew k513 full-shard\n", "'k513': a world is"},
    {HEAD "anew k4r full-shard\n", "'k4r': a world is"},
    {HEAD "anew k4\n", "behind a world is its strategy"},
    {HEAD "anew k4 layer\n", "'layer': behind a world"},
    {HEAD "anew k4 full-shard layers\n", "'layers': nothing more"},
    {HEAD "set 0 divide-factor 0\n", "a factor is a number from 2^-10"},
    {HEAD "set all predivide-factor 1025\n", "a factor is a number from"},
    {HEAD "set 0 divide-factor\n", "a factor is a number from"},
    {HEAD "set 0 sync 3\n", "such a knob is turned to 0 or 1"},
    {HEAD "set 0 divide 3\n", "'divide': a knob is sync"},
    {HEAD "zero 1\n", "'1': nothing more"},
    {HEAD "pass\n", "action 1 ends too early: a batch"},
    {HEAD "pass 1\n", "'1': a batch"},
    {HEAD "pass 1.4\n", "'1.4': a batch"},
    {HEAD "pass 1.0.0\n", "'1.0.0': a batch"},
    {HEAD "pass i+.0\n", "'i+.0': a batch"},
    {HEAD "pass -1.0\n", "'-1.0': a batch"},
    {HEAD "pass 99999999999999999999.0\n", "a batch"},
    {HEAD "pass 0.0 until 9/8\n", "'9/8': a place"},
    {HEAD "pass 0.0 until 1/0\n", "'1/0': a place"},
    {HEAD "pass 0.0 at 1\n", "behind `at PLACE`"},
    {HEAD "pass 0.0 at 1 ! nothing\n", "'nothing': no call"},
    {HEAD "eval 0.0 s\n", "'s': nothing more"},
    {HEAD "step 0.1\n", "'0.1': a step says"},
    {HEAD "step lr nan\n", "'nan': numbers"},
    {HEAD "backward-step lr 1 finite\n", "nothing more belongs"},
    {HEAD "assign 0\n", "values are initial, summoned"},
    {HEAD "assign 64 1\n", "'64': a parameter"},
    {HEAD "again renamed 64\n", "'64': a parameter"},
    {HEAD "save a full of\n", "parts are parameters"},
    {HEAD "save a full of extra states\n", "'states': nothing more belongs"},
    {HEAD "load a leniently\n", "nothing more belongs"},
    {HEAD "summon all\n", "`summon` alone is of all"},
    {HEAD "summon rank0\n", "'rank0': "},
    {HEAD "assign all 10000\n", "'10000': values are"},
    {HEAD "assign all 1 by 0\n", "'0': a slice has"},
    {HEAD "send 64 1\n", "'64': a parameter"},
    {HEAD "send all\n", "values are initial, summoned"},
    {HEAD "send all 1 by 7\n", "'by': nothing more belongs"},
    {HEAD "step lr 0x1\n", "'0x1': numbers"},
    {HEAD "step lr 1e99\n", "'1e99': numbers"},
    {HEAD "step lr 0.1,0.2\n", "numbers, one for all groups"},
    {HEAD "step lr 0.1,\n", "'0.1,': numbers"},
    {"script 1\ngroups 3\n--\nstep lr 1,2\n", "numbers, one for all groups"},
    {"script 1\nscale 1024\n--\nzero\n", "'1024': a factor is 2^E"},
    {"script 1\nscale 2^127\n--\nzero\n", "a loss is scaled by"},
    {"script 1\nscale 2^-127\n--\nzero\n", "a loss is scaled by"},
    {"script 1\nscale 2^9 every 0\n--\nzero\n", "'0': `every N` steps"},
    {"script 1\ndeferred\nrank0\n--\nzero\n", "'--': values are on no rank"},
    {"script 1\nscale 2^9 often\n--\nzero\n", "settings are a line each"},
    {HEAD "clip 1\n", "clip says"},
    {HEAD "sync maybe\n", "'maybe': sync is"},
    {HEAD "save a\n", "a form is"},
    {HEAD "save e full\n", "'e': a checkpoint is"},
    {HEAD "wait a same\n", "a checkpoint is"},
    {HEAD "repeat 0 { zero }\n", "'0': a repeat is played"},
    {HEAD "repeat 2 { }\n", "an empty repeat"},
    {HEAD "repeat 2 zero\n", "'zero': behind `repeat N`"},
    {HEAD "repeat 2 {\nzero\n", "a repeat has no }"},
    {HEAD "zero }\n", "'}': no repeat is open"},
    {HEAD "{ zero }\n", "an action begins"},
    {HEAD "repeat 2 { repeat 2 { repeat 2 { repeat 2 { repeat 2 { zero }}}}}",
     "4 deep"},
    {HEAD "repeat 1000000 { repeat 1000000 { zero } }", "16777216"},
    {HEAD "repeat 1000000 { repeat 16 { zero; zero } }", "16777216"},
    {HEAD "repeat 1000001 { zero }", "'1000001': a repeat"},
};

UNIT_TEST(test_malformed)
{
    for (size_t i = 0; i < N_OF(malformed); i++) {
        struct fsdp_error error = {0};
        struct script s;

        if (script_parse(malformed[i].text, &s, &error) != FSDP_ERR_FORMAT ||
            !strstr(error.message, malformed[i].why)) {
            fail_msg("%s\nsays: %s\nnot: %s", malformed[i].text, error.message,
                     malformed[i].why);
        }
        script_release(&s);
    }
}

/* Of 20,000 texts with one byte changed none does more than fail; one that is
 * read is written so that it reads back as the same. */
UNIT_TEST(test_damaged)
{
    static const char text[] =
        "script 1\ngroups 2\n--\nrepeat 2 {\npass i+1.0 n at 1/2 ! end-early "
        "set tie rank 1 until 5/8\n}\nanew k2 no-shard\nstep lr 0.5,1 decay "
        "0\nsave a full-rank0\nwait a\n";
    uint32_t random = 1;

    for (int i = 0; i < 20000; i++) {
        char damaged[sizeof(text)];
        struct fsdp_error error;
        struct script s;

        memcpy(damaged, text, sizeof(text));
        random = random * 1664525u + 1013904223u;
        damaged[(random >> 8) % (sizeof(text) - 1)] =
            " .;{}0/9ai#!\n"[(random >> 24) % 13];
        if (script_parse(damaged, &s, &error) == FSDP_OK) {
            char *written = script_text(&s);

            assert_non_null(written);
            assert_canonical(written, written);
            free(written);
        }
        script_release(&s);
    }
}

/* ---- Walks ---- */

UNIT_TEST(test_walk)
{
    static const uint32_t steps[] = {0, 5, 6, 7, 1, 5, 6, 7, 9};
    struct script s;
    struct script_walk w;
    const struct script_action *a;
    size_t n = 0;

    script_test_parse(
        HEAD "repeat 2 { pass i.0; repeat 3 { pass i+5.0 } } pass 9.0", &s);
    w = script_begin(&s);
    while ((a = script_next(&w))) {
        assert_int_equal(a->verb, SCRIPT_PASS);
        assert_true(n < N_OF(steps));
        assert_int_equal(script_step(&w, a), steps[n++]);
    }
    assert_int_equal(n, N_OF(steps));
    script_release(&s);
}

/* A bit for each step whose gradients are used again. */
static uint32_t used_again(const char *actions)
{
    char text[256];
    uint32_t bits = 0;
    struct script s;

    snprintf(text, sizeof(text), HEAD "%s", actions);
    script_test_parse(text, &s);
    for (uint32_t i = 0; i < s.n_actions; i++) {
        bits |= (uint32_t)script_step_is_used_again(&s, i) << i;
    }
    script_release(&s);
    return bits;
}

UNIT_TEST(test_used_again)
{
    assert_int_equal(used_again("pass 0.0; step lr 1; zero; pass 1.0; "
                                "step lr 1"),
                     0);
    assert_int_equal(used_again("pass 0.0; step lr 1; step lr 1; zero"), 2);
    assert_int_equal(used_again("pass 0.0; step lr 1; look; eval 1.0; "
                                "pass 1.0; step lr 1"),
                     2);
    assert_int_equal(used_again("repeat 2 { pass i.0; step lr 1 }"), 4);
    assert_int_equal(used_again("pass 0.0; zero; step lr 1; pass 1.0"), 0);
    assert_int_equal(used_again("repeat 2 { pass i.0; step lr 1; zero }"), 0);
    assert_int_equal(used_again("step lr 1; again; pass 0.0; step lr 1; "
                                "anew; pass 0.0"),
                     0);
    assert_int_equal(used_again("save a sharded; wait a; pass 0.0; step lr 1; "
                                "load a; pass 0.0"),
                     0);
}

UNIT_TEST(test_groups)
{
    static const uint32_t two[] = {0, 1, 0, 0, 1, 0};
    static const uint32_t three[] = {0, 1, 0, 2, 0, 0, 1};

    for (uint32_t p = 0; p < N_OF(two); p++) {
        assert_int_equal(script_group_of(1, p), 0);
        assert_int_equal(script_group_of(2, p), two[p]);
    }
    for (uint32_t p = 0; p < N_OF(three); p++) {
        assert_int_equal(script_group_of(3, p), three[p]);
    }
}

UNIT_TEST(test_options)
{
    struct fsdp_options options = {.beta1 = 9, .eps = 9, .momentum = 9};
    struct script s;

    script_test_parse("script 1\nbetas 0.5 0.75\nmomentum 0.25\n--\nzero", &s);
    script_options(&s, &options);
    assert_true(options.beta1 == 0.5f && options.beta2 == 0.75f &&
                options.eps == 9.0f && options.momentum == 0.25f);
    assert_false(script_has_own_numbers(&s));
    script_release(&s);
    /* Numbers that groups have of their own are no options for all. */
    script_test_parse("script 1\ngroups 2\neps 0.125\nbetas 0,0.25 0.5,0\n"
                      "momentum 0.75,0.5\n--\nzero",
                      &s);
    assert_true(script_has_own_numbers(&s));
    script_options(&s, &options);
    assert_true(options.beta2 == 0.75f);
    assert_true(options.beta1 == 0.5f && options.eps == 0.125f &&
                options.momentum == 0.25f);
    script_release(&s);
}

/* ---- Cases ---- */

static const struct {
    const char *id, *text;
} expanded[] = {
    {"mlp.seed.natural.full-shard.k4.flat.layer.rank.ns.sgd",
     HEAD "look\n"
          "pass 0.0 n\npass 0.1 s\nlook\nstep lr 0.05 decay 0\nlook\nzero\n"
          "pass 1.0 n\npass 1.1 s\nlook\nstep lr 0.05 decay 0\nlook\nzero\n"
          "repeat 2 {\n"
          "pass i+2.0 n\npass i+2.1 s\nstep lr 0.05 decay 0\nzero\n"
          "}\n"
          "look\n"},
    {"mlp.seed.natural.full-shard.k4.flat.layer.rank.s.sgd.disagree",
     HEAD "! shard\n! shard-units\n"},
    {"mlp.seed.natural.full-shard.k4.flat.layer.rank.s.sgd.shard",
     HEAD "look\n"},
};

UNIT_TEST(test_expanded)
{
    for (size_t i = 0; i < N_OF(expanded); i++) {
        struct run_case c;
        char *text;

        assert_true(case_of_id(expanded[i].id, &c));
        text = script_of_case(&c, false);
        assert_non_null(text);
        assert_string_equal(text, expanded[i].text);
        free(text);
    }
}

static void assert_legal(const struct run_case *c, bool saves_only,
                         const uint32_t points[2], const char *id)
{
    struct fsdp_error error = {0};
    struct script s;
    char *written;
    char *text = script_of_case(c, saves_only);

    assert_non_null(text);
    script_test_parse(text, &s);
    if (script_legal(&s, points, &error) != FSDP_OK) {
        fail_msg("%s: %s", id, error.message);
    }
    written = script_text(&s);
    assert_non_null(written);
    assert_string_equal(written, text);
    free(written);
    free(text);
    script_release(&s);
}

/* The scripts of all cases are legal, and canonical. */
UNIT_TEST(test_manifest)
{
    struct case_list list = {0};
    struct fsdp_error error = {0};
    struct text book;

    assert_int_equal(text_load(NULL, &book, &error), FSDP_OK);
    assert_int_equal(manifest_make(&list, &error), FSDP_OK);
    for (uint32_t i = 0; i < list.n; i++) {
        const struct fsdp_model *model;
        struct case_model m;
        struct run_case saver;
        uint32_t points[2];
        char id[CASE_ID_BYTES];

        case_id(&list.c[i], id);
        assert_int_equal(
            case_model_make(&list.c[i], book.bytes, book.n, &m, &error),
            FSDP_OK);
        model = &m.model->model;
        points[0] = model->sequence[FSDP_SEQUENCE_TRAIN]->n;
        points[1] = model->sequence[FSDP_SEQUENCE_EVAL]->n;
        assert_legal(&list.c[i], false, points, id);
        if (case_saver(&list.c[i], &saver)) {
            assert_legal(&saver, true, points, id);
        }
        case_model_release(&m);
    }
    manifest_release(&list);
    text_release(&book);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_canonical),  cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_damaged),    cmocka_unit_test(test_walk),
        cmocka_unit_test(test_used_again), cmocka_unit_test(test_groups),
        cmocka_unit_test(test_expanded),   cmocka_unit_test(test_manifest),
        cmocka_unit_test(test_options),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
