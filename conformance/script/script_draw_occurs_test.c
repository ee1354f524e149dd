/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_draw_occurs_test.c - among 20,000 scripts that are drawn is every kind
 * of action, behind every kind that it may follow, and every value of a
 * header on each workload.
 */
#include "models/workload.h"
#include "script/script_draw.h"
#include "script/script_testing.h"
#include "testing/unit_testing.h"

#include <stdio.h>
#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

enum {
    N_DRAWN = 20000,
    N_KNOBS = FSDP_KNOB_PREDIVIDE_FACTOR + 1,
};

/* How often each kind of action is drawn, and behind which. */
struct counts {
    uint32_t verb[SCRIPT_N_VERBS];
    uint32_t pair[SCRIPT_N_VERBS][SCRIPT_N_VERBS];
    uint32_t edit[SCRIPT_N_EDITS], call[SCRIPT_N_CALLS];
    uint32_t passes[16]; /* between two steps */
    uint32_t knob[N_KNOBS], by_hand;
};

static void count_pass(const struct script *s, const struct script_action *a,
                       struct counts *n)
{
    for (uint32_t i = 0; i < a->n_inside; i++) {
        const struct script_inside *in = &s->inside[a->first_inside + i];

        n->call[in->call] += script_is_wrong(in);
        n->by_hand += in->by_hand != 0;
    }
    for (uint32_t i = 0; i < a->n_edits; i++) {
        n->edit[s->edit[a->first_edit + i].kind]++;
    }
}

static void count(const struct script *s, struct counts *n)
{
    const struct script_action *last = NULL;
    uint32_t passes = 0;

    for (uint32_t i = 0; i < s->n_actions; i++) {
        const struct script_action *a = &s->action[i];

        n->verb[a->verb]++;
        n->call[a->call] += a->verb == SCRIPT_WRONG;
        if (a->verb == SCRIPT_SET) {
            n->knob[a->knob]++;
        }
        count_pass(s, a, n);
        passes += a->verb == SCRIPT_PASS && a->ending == SCRIPT_WHOLE;
        if (a->verb == SCRIPT_STEP) {
            n->passes[passes < 15 ? passes : 15]++;
            passes = 0;
        }
        if (a->verb != SCRIPT_REPEAT) {
            n->pair[last ? last->verb : SCRIPT_REPEAT][a->verb]++;
            last = a;
        }
    }
}

/* Whether one of these may stand behind the other, somewhere. */
static bool may_follow(const char *first, const char *second)
{
    static const char *const before[] = {"zero",
                                         "pass 0.0",
                                         "pass 0.0 n",
                                         "save a full",
                                         "save a full; wait a",
                                         "thaw 0; save a full; wait a",
                                         "unshard",
                                         "save a full; unshard",
                                         "save a full; wait a; unshard"};
    static const char *const behind[] = {"zero", "wait a", "again"};

    for (size_t i = 0; i < N_OF(before) * N_OF(behind); i++) {
        struct fsdp_error error;
        struct script s;
        char text[256];
        bool legal;

        snprintf(text, sizeof(text), "script 1\n--\n%s; %s; %s; %s",
                 before[i % N_OF(before)], first, second,
                 behind[i / N_OF(before)]);
        assert_int_equal(script_parse(text, &s, &error), FSDP_OK);
        legal = script_legal(&s, NULL, &error) == FSDP_OK;
        script_release(&s);
        if (legal) {
            return true;
        }
    }
    return false;
}

/* Actions of each kind. If any action of a kind may follow one of another kind,
 * the kinds may follow each other. */
static const struct {
    uint32_t verb;
    const char *text;
} examples[] = {
    {SCRIPT_PASS, "pass 0.0 s"},
    {SCRIPT_PASS, "pass 0.0 until 1"},
    {SCRIPT_PASS, "pass 0.0 left-open 1"},
    {SCRIPT_EVAL, "eval 0.0"},
    {SCRIPT_STEP, "step lr 1"},
    {SCRIPT_ZERO, "zero"},
    {SCRIPT_CLIP, "clip 1 p 2"},
    {SCRIPT_LOOK, "look"},
    {SCRIPT_SUMMON, "summon"},
    {SCRIPT_UNSHARD, "unshard"},
    {SCRIPT_RESHARD, "reshard"},
    {SCRIPT_SYNC, "sync on"},
    {SCRIPT_SET, "set all sync 0"},
    {SCRIPT_SAVE, "save a full"},
    {SCRIPT_WAIT, "wait a"},
    {SCRIPT_LOAD, "load a"},
    {SCRIPT_AGAIN, "again"},
    {SCRIPT_ANEW, "anew"},
    {SCRIPT_WRONG, "! unknown-sequence"},
    {SCRIPT_UNSHARD_UNIT, "unshard 0"},
    {SCRIPT_RESHARD_UNIT, "reshard 0"},
    {SCRIPT_FREEZE, "freeze 0"},
    {SCRIPT_THAW, "thaw 0"},
    {SCRIPT_BACKWARD_STEP, "backward-step lr 1"},
    {SCRIPT_ASSIGN, "assign 0 1"},
    {SCRIPT_SUMMON_SOME, "summon 0"},
    {SCRIPT_SEND, "send 0 1"},
    {SCRIPT_WRONG, "! param-at-rest"},
    {SCRIPT_WRONG, "! step-while-open"},
};

/* Left out are calls that need what not every model has (a tie, an ignored
 * parameter, a second unit, a recompute), and calls that are allowed at one
 * place only. */
static bool is_drawn(uint32_t call)
{
    static const uint32_t left_out[] = {
        SCRIPT_CALL_RANKS_DISAGREE_ON_PARAMETER_UNITS,
        SCRIPT_CALL_PARAM_OF_IGNORED,
        SCRIPT_CALL_GRAD_OF_IGNORED,
        SCRIPT_CALL_FREEZE_OF_IGNORED,
        SCRIPT_CALL_TIED_TO_IGNORED,
        SCRIPT_CALL_RESHARD_KEPT,
        SCRIPT_CALL_BACKWARD_STEP_WINDOWS,
        SCRIPT_CALL_GRAD_IN_RECOMPUTE};
    bool drawn = call < SCRIPT_N_DRAWN_CALLS ||
                 (call >= SCRIPT_CALL_UNSHARD_UNKNOWN_UNIT &&
                  call <= SCRIPT_CALL_SEND_LENIENCY);

    for (size_t i = 0; i < N_OF(left_out); i++) {
        drawn = drawn && call != left_out[i];
    }
    return drawn;
}

UNIT_TEST(test_occurs)
{
    static struct counts n;
    bool legal[SCRIPT_N_VERBS][SCRIPT_N_VERBS] = {{false}};
    uint32_t pairs = 0;

    for (size_t i = 0; i < N_OF(examples); i++) {
        for (size_t k = 0; k < N_OF(examples); k++) {
            legal[examples[i].verb][examples[k].verb] |=
                may_follow(examples[i].text, examples[k].text);
        }
    }
    for (uint64_t seed = 0; seed < N_DRAWN; seed++) {
        struct script s;

        script_test_draw(SCRIPT_GENERATOR, seed, &s);
        count(&s, &n);
        script_release(&s);
    }
    for (uint32_t i = 0; i < SCRIPT_N_VERBS; i++) {
        for (uint32_t k = 0; k < SCRIPT_N_VERBS; k++) {
            if (i == SCRIPT_REPEAT || k == SCRIPT_REPEAT) {
                continue;
            }
            pairs += legal[i][k];
            if (legal[i][k] != (n.pair[i][k] > 0)) {
                fail_msg("verb %u behind %u: %u times, legal %d", k, i,
                         n.pair[i][k], legal[i][k]);
            }
        }
        assert_true(n.verb[i] >= N_DRAWN / 20);
    }
    assert_true(pairs > 150);
    for (uint32_t i = 0; i < SCRIPT_N_EDITS; i++) {
        assert_true(n.edit[i] > 100);
    }
    for (uint32_t i = 0; i < SCRIPT_N_CALLS; i++) {
        if (is_drawn(i) ? n.call[i] < 20 : n.call[i] > 0) {
            fail_msg("! %s: %u times", script_calls[i].name, n.call[i]);
        }
    }
    for (uint32_t i = 0; i < N_KNOBS; i++) {
        assert_true(n.knob[i] > 300);
    }
    assert_true(n.by_hand > 300);
    for (uint32_t i = 0; i <= 8; i++) {
        assert_true(n.passes[i] > 100);
    }
}

/* Values of the header, each of which occurs. */
UNIT_TEST(test_headers)
{
    uint32_t strategy[CASE_N_STRATEGIES] = {0};
    uint32_t ranks[17] = {0};
    uint32_t fold[3] = {0};
    uint32_t wrap[CASE_N_WRAPS] = {0};
    uint32_t groups[6] = {0};
    uint32_t ahead = 0;
    uint32_t worlds = 0;

    for (uint64_t seed = 0; seed < 4000; seed++) {
        struct script s;

        script_test_draw(SCRIPT_GENERATOR, seed, &s);
        strategy[s.c.strategy]++;
        ranks[s.c.ranks]++;
        fold[s.c.fold]++;
        wrap[s.c.wrap]++;
        groups[s.groups]++;
        ahead += s.c.prefetch_forward > 0 && s.c.reduces_in_flight > 0;
        for (uint32_t i = 0; i < s.n_actions; i++) {
            worlds += s.action[i].verb == SCRIPT_ANEW &&
                      s.action[i].world.ranks != s.c.ranks &&
                      s.action[i].world.ranks != 0;
        }
        script_release(&s);
    }
    for (uint32_t i = 0; i < CASE_N_STRATEGIES; i++) {
        assert_true(strategy[i] > 100);
    }
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(fold[i] > 300);
    }
    for (uint32_t i = 0; i <= CASE_WRAP_DRAWN; i++) {
        assert_true(wrap[i] > 100);
    }
    assert_true(wrap[CASE_WRAP_SCATTER] > 100);
    for (uint32_t i = 1; i <= 5; i++) {
        assert_true(groups[i] > 100);
    }
    assert_true(ranks[1] > 50 && ranks[3] > 50 && ranks[15] > 50 &&
                ranks[16] > 50);
    assert_true(ahead > 100);
    assert_true(worlds > 20);
}

/* Choices of a header that the workload decides, and choices that occur with
 * every workload. */
struct axes {
    uint32_t precision[CASE_N_PRECISIONS], recompute[WORKLOAD_N_RECOMPUTES],
        frozen[WORKLOAD_N_FROZEN], factors[CASE_N_FACTORS];
    uint32_t scaled, grows, own;
    uint32_t offload[CASE_N_OFFLOADS], deferred, rank0;
};

static void count_axes(const struct script *s, struct axes *n)
{
    n->precision[s->c.precision]++;
    n->recompute[s->c.recompute]++;
    n->frozen[s->c.frozen]++;
    n->factors[s->c.factors]++;
    n->scaled += s->scale.said;
    n->grows += s->scale.every > 0;
    n->own += script_has_own_numbers(s);
    n->offload[s->c.offload]++;
    n->deferred += s->deferred;
    n->rank0 += s->rank0;
}

static void assert_axes(const char *workload, const struct axes *n)
{
    const struct workload *w = workload_find(workload);

    /* The last is for adapters: r16 has all of it but one rounding. */
    for (uint32_t i = 0; i < CASE_REDUCE_BF16_PENDING; i++) {
        assert_true(n->precision[i] > 5);
    }
    for (uint32_t i = 1; i < WORKLOAD_N_RECOMPUTES; i++) {
        assert_true((n->recompute[i] > 10) == (w->recomputes >> i & 1));
    }
    for (uint32_t i = 1; i < WORKLOAD_N_FROZEN; i++) {
        assert_true((n->frozen[i] > 10) == (w->freezes >> i & 1));
    }
    for (uint32_t i = 0; i < CASE_N_FACTORS; i++) {
        assert_true((n->factors[i] > 10) == (i <= CASE_UNIT_FACTORS));
    }
    for (uint32_t i = 0; i < CASE_N_OFFLOADS; i++) {
        assert_true(n->offload[i] > 10);
    }
    assert_true(n->scaled > 50 && n->grows > 20 && n->own > 40);
    assert_true(n->deferred > 50 && n->rank0 > 50);
}

/* Dtypes, scaled losses, what is recomputed, frozen, divided, what groups have
 * of their own, what rests on the host, who has values: on every workload. */
UNIT_TEST(test_axes)
{
    static const char *const workload[] = {"mlp", "linear", "gpt", "graph"};
    static struct axes n[N_OF(workload)];

    for (uint64_t seed = 0; seed < 6000; seed++) {
        struct script s;

        script_test_draw(SCRIPT_GENERATOR, seed, &s);
        for (size_t i = 0; i < N_OF(workload); i++) {
            if (strcmp(s.c.workload, workload[i]) == 0) {
                count_axes(&s, &n[i]);
            }
        }
        script_release(&s);
    }
    for (size_t i = 0; i < N_OF(workload); i++) {
        assert_axes(workload[i], &n[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_occurs),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_axes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
