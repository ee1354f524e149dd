/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload_requirements.c - shards, gradients and states that rest on the host:
 * none of their bytes on the device, all of them on the host, the right number
 * of copies between the two, and the same values as without offload. Sums that
 * are made on the host are in reduce_requirements.c.
 */
#include "requirements/families.h"
#include "requirements/script_action.h"

#include "judge/compare/compare_checks.h"
#include "judge/compare/compare_memory.h"

#include <stdlib.h>

/* ---- The same curve ------------------------------------------------------ */

static void stay(struct run_case *c)
{
    c->offload = CASE_NOT_OFFLOADED;
}

static bool is_offloaded(const struct expect *e)
{
    return compare_case_trains(e) && expect_is_offloaded(e);
}

static bool has_twin(const struct expect *e)
{
    return is_offloaded(e) && compare_companion(e, stay);
}

/* ---- What rests ---------------------------------------------------------- */

/* Whether units say for themselves where they rest. */
static bool differs(const struct expect *e)
{
    return is_offloaded(e) && e->units->offload;
}

static bool is_alike(const struct expect *e)
{
    return is_offloaded(e) && !e->units->offload;
}

/* Compares the bytes of all kinds from `first` on, but for those that are not
 * the engine's. */
static bool same_rest(const struct expect *e, const struct record_rest *got,
                      uint32_t first, struct finding at, struct finding *f)
{
    for (uint32_t kind = first; kind < first + FSDP_N_KINDS; kind++) {
        const uint64_t want =
            expect_rest_of(e, (uint32_t)at.rank, kind, e->rest.live);

        if (kind % FSDP_N_KINDS != FSDP_ACTIVATION && got->live[kind] != want) {
            at.stage = compare_kind_of_bytes(kind);
            return finding_bytes(f, at, got->live[kind], want, "live at rest");
        }
    }
    return true;
}

/* Compares the bytes at rest behind shard and behind each step. */
static bool rests(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, uint32_t first, struct finding *f)
{
    if (!same_rest(e, &rank->memory.after_shard, first,
                   finding_at("memory", -1, -1, k), f)) {
        return false;
    }
    for (uint32_t t = 0; t < e->c->steps; t++) {
        const struct finding at = finding_at("memory", t, -1, k);

        if (!rank->memory.after_step || t >= rank->n_steps) {
            return finding_text(f, at,
                                "memory after this step is not recorded");
        }
        if (!same_rest(e, &rank->memory.after_step[t], first, at, f)) {
            return false;
        }
    }
    return true;
}

static bool device_rests(const struct expect *e, const struct record_rank *rank,
                         uint32_t k, struct finding *f)
{
    return rests(e, rank, k, 0, f);
}

static bool host_rests(const struct expect *e, const struct record_rank *rank,
                       uint32_t k, struct finding *f)
{
    return rests(e, rank, k, RECORD_HOST, f);
}

static bool host_spoil(const struct expect *e, struct record_rank *rank)
{
    (void)e;
    if (!rank->memory.after_step || rank->n_steps == 0) {
        return false;
    }
    rank->memory.after_step[rank->n_steps - 1]
        .live[RECORD_HOST + FSDP_STAGING]++;
    return true;
}

static bool both_rest(const struct expect *e, const struct record_rank *rank,
                      uint32_t k, struct finding *f)
{
    return rests(e, rank, k, 0, f) && rests(e, rank, k, RECORD_HOST, f);
}

/* ---- The most of it ------------------------------------------------------ */

static bool is_strict(const struct expect *e)
{
    return is_offloaded(e) && compare_case_strict(e);
}

static bool host_peak_of_rank(const struct expect *e,
                              const struct record_rank *rank, uint32_t k,
                              struct finding *f)
{
    for (uint32_t kind = RECORD_HOST; kind < RECORD_N_KINDS; kind++) {
        const uint64_t got = rank->memory.peak[kind];
        const uint64_t want = expect_rest_of(e, k, kind, e->peak);

        if (kind != RECORD_HOST + FSDP_ACTIVATION && got != want) {
            return finding_bytes(
                f, finding_at(compare_kind_of_bytes(kind), -1, -1, k), got,
                want, "at once");
        }
    }
    return true;
}

/* ---- Copies -------------------------------------------------------------- */

/* Whether copies can be counted: a cancelled pass may have copied as far ahead
 * as it may gather. */
static bool is_counted(const struct expect *e)
{
    if (case_is_script(e->c)) {
        return expect_is_offloaded(e);
    }
    return is_offloaded(e) &&
           (e->c->scenario != CASE_CANCEL || compare_case_strict(e));
}

static bool same_copies(const struct record_hosted *want,
                        const struct record_hosted *got, struct finding at,
                        struct finding *f)
{
    at.stage = "copies";
    if (got->to_device != want->to_device) {
        return finding_count(f, at, got->to_device, want->to_device,
                             "copies from the host to the device in this step");
    }
    if (got->to_host != want->to_host) {
        return finding_count(f, at, got->to_host, want->to_host,
                             "copies from the device to the host in this step");
    }
    if (got->to_device_bytes != want->to_device_bytes) {
        return finding_bytes(f, at, got->to_device_bytes, want->to_device_bytes,
                             "copied from the host to the device in this step");
    }
    return got->to_host_bytes == want->to_host_bytes ||
           finding_bytes(f, at, got->to_host_bytes, want->to_host_bytes,
                         "copied from the device to the host in this step");
}

static bool copies_in_step(const struct expect *e,
                           const struct record_hosted *got, struct finding at,
                           struct finding *f)
{
    return same_copies(&e->hosted, got, at, f);
}

/* Calls `holds` for each step of the rank. */
static bool
each_step(const struct expect *e, const struct record_rank *rank, uint32_t k,
          bool (*holds)(const struct expect *e, const struct record_hosted *got,
                        struct finding at, struct finding *f),
          struct finding *f)
{
    static const struct record_hosted none = {0};

    for (uint32_t t = 0; t < e->c->steps; t++) {
        const bool there = rank->memory.hosted && t < rank->n_steps;

        if (!holds(e, there ? &rank->memory.hosted[t] : &none,
                   finding_at("memory", t, -1, k), f)) {
            return false;
        }
    }
    return true;
}

/* Whether the engine is free in how it copies in this action: for saves, loads,
 * initial values, and values that are shown to rank 0 alone or sent by it. */
static bool copies_as_it_likes(const struct expect *e,
                               const struct script_action *a)
{
    return a->verb == SCRIPT_SAVE || a->verb == SCRIPT_WAIT ||
           a->verb == SCRIPT_LOAD || a->verb == SCRIPT_AGAIN ||
           (a->verb == SCRIPT_SUMMON_SOME && a->on_rank0) ||
           a->verb == SCRIPT_SEND ||
           (a->ending != SCRIPT_WHOLE &&
            (e->c->prefetch_forward != 0 || e->c->prefetch_backward != 0));
}

/* Under a loss scale a step with gradients that are not finite is left out. */
static bool is_left_out(const struct expect *e, const struct script_action *a,
                        const struct record_hosted *got)
{
    return a->verb == SCRIPT_STEP && e->script.scale.said &&
           got->to_device + got->to_host == 0;
}

/* In the record of a script a step is an action. */
static bool copies_in_action(const struct expect *e,
                             const struct record_hosted *got, struct finding at,
                             struct finding *f)
{
    const struct expect_event *v = &e->event[at.step];

    return copies_as_it_likes(e, v->action) || is_left_out(e, v->action, got) ||
           same_copies(&v->hosted, got, at, f) ||
           script_action_tell(e, (uint32_t)at.step, f);
}

static bool copies_of_rank(const struct expect *e,
                           const struct record_rank *rank, uint32_t k,
                           struct finding *f)
{
    return each_step(e, rank, k,
                     case_is_script(e->c) ? copies_in_action : copies_in_step,
                     f);
}

/* The copies of the last step; NULL: nothing was copied or stepped. */
static struct record_hosted *last_of(struct record_rank *rank)
{
    return rank->memory.hosted && rank->n_steps > 0
               ? &rank->memory.hosted[rank->n_steps - 1]
               : NULL;
}

static bool copies_spoil(const struct expect *e, struct record_rank *rank)
{
    struct record_hosted *last = last_of(rank);
    uint32_t i = rank->n_steps;

    while (last && case_is_script(e->c) && i > 0 && i <= e->n_events &&
           copies_as_it_likes(e, e->event[i - 1].action)) {
        last = --i > 0 ? last - 1 : NULL;
    }
    if (last) {
        last->to_device++;
    }
    return last != NULL;
}

/* ---- The step ------------------------------------------------------------ */

/* Elements of shard s that are stepped on the host, or on the device. NOMEM. */
static int stepped_by(const struct expect *e, uint32_t s, bool host,
                      uint64_t *out)
{
    struct expect_part *part;
    uint32_t n;

    *out = 0;
    FSDP_TRY(expect_parts(e, s, &part, &n));
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t p = part[i].parameter;
        const uint32_t u = e->unit_of_parameter[p];

        *out +=
            e->stepped[p] && e->unit[u].step_on_host == host ? part[i].n : 0;
    }
    free(part);
    return FSDP_OK;
}

/* An engine whose steps are no operators of the device shows nothing here. */
static bool step_in_place(const struct expect *e,
                          const struct record_hosted *got, struct finding at,
                          struct finding *f)
{
    uint64_t device;
    uint64_t host;
    const uint32_t s = (uint32_t)at.rank % e->shards;

    at.stage = "step";
    if (got->stepped_on_device == 0 && got->stepped_on_host == 0) {
        return true;
    }
    if (stepped_by(e, s, false, &device) != FSDP_OK ||
        stepped_by(e, s, true, &host) != FSDP_OK) {
        return finding_text(f, at, "out of memory");
    }
    if (got->stepped_on_device != device) {
        return finding_count(f, at, got->stepped_on_device, device,
                             "elements that were stepped on the device");
    }
    return got->stepped_on_host == host ||
           finding_count(f, at, got->stepped_on_host, host,
                         "elements that were stepped on the host");
}

static bool step_of_rank(const struct expect *e, const struct record_rank *rank,
                         uint32_t k, struct finding *f)
{
    return each_step(e, rank, k, step_in_place, f);
}

static bool step_spoil(const struct expect *e, struct record_rank *rank)
{
    struct record_hosted *last = last_of(rank);

    (void)e;
    if (last) {
        last->stepped_on_device++;
        last->stepped_on_host++;
    }
    return last != NULL;
}

/* ---- Refusals ------------------------------------------------------------ */

static bool is_options(const struct expect *e)
{
    return e->c->scenario == CASE_OPTIONS;
}

const struct requirement offload_requirements[] = {
    {.since = "1.1",
     .must = 1,
     .level = LEVEL_MEMORY,
     .claim = "offload",
     .check = &check_each_rank},
    {.id = "offload.same-bits",
     .text = "What rests on the host trains as what rests on the device does, "
             "bit for bit.",
     .level = LEVEL_STEP,
     .needs = "num.loss-finite grad.local reduce.baseline step.state "
              "step.weights",
     .applies = has_twin,
     .check = &check_curve_of,
     .change = stay},
    {.id = "offload.device-rest",
     .text = "Of what is offloaded no byte rests on the device, and of all "
             "else what always does.",
     .needs = "memory.ranges-valid run.shows-every-step",
     .applies = is_alike,
     .rank = {device_rests, .raises = COMPARE_OF_RANK(
                                memory.after_shard.live[FSDP_PARAM_SHARD])}},
    {.id = "offload.host-rest",
     .text = "What is offloaded rests on the host, after sharding and after "
             "every step, and nothing else does, to the byte.",
     .needs = "memory.ranges-valid run.shows-every-step",
     .applies = is_alike,
     .rank = {host_rests, host_spoil}},
    {.id = "offload.units",
     .text = "A unit that says itself what of it is offloaded rests where it "
             "says, whatever the option is.",
     .needs = "memory.ranges-valid run.shows-every-step",
     .applies = differs,
     .rank = {both_rest, .raises = COMPARE_OF_RANK(
                             memory.after_shard.live[FSDP_PARAM_SHARD])}},
    {.id = "offload.host-peak",
     .text = "Without running ahead the most bytes of each kind that are on "
             "the host at once are those of the oracle.",
     .needs = "offload.device-rest offload.host-rest offload.units "
              "offload.copies",
     .applies = is_strict,
     .rank = {host_peak_of_rank, .raises = COMPARE_OF_RANK(
                                     memory.peak[RECORD_HOST + FSDP_STAGING])}},
    /* Each parameter crosses the bus twice in a step, three times if it is
     * resharded after forward. */
    {.id = "offload.copies",
     .text = "In each step every window copies its shard from the host once, "
             "every reduction its result to the host once, a step of a unit "
             "that rests in both places its shard there and back, and nothing "
             "else is copied.",
     .level = LEVEL_COMM,
     .needs = "offload.device-rest offload.host-rest offload.units "
              "offload.step-on-host",
     .applies = is_counted,
     .rank = {copies_of_rank, copies_spoil}},
    {.id = "offload.step-on-host",
     .text = "The optimizer runs where states rest, on the host or on the "
             "device.",
     .needs = "offload.device-rest offload.host-rest offload.units",
     .applies = is_offloaded,
     .rank = {step_of_rank, step_spoil}},
    {.id = "error.offload",
     .text = "Bits of offload that are none, of the option or of a unit, are "
             "refused as INVALID when sharding.",
     .level = LEVEL_ERRORS,
     .needs = "run.survives run.ranks-present error.says-why",
     .applies = is_options,
     .check = &check_answers,
     .answers = {{"unknown-offload", FSDP_ERR_INVALID},
                 {"unknown-offload-of-unit", FSDP_ERR_INVALID},
                 {"unknown-offload-bit-of-unit", FSDP_ERR_INVALID}}},
    /* Without a host device there is nothing to offload to. */
    {.id = "error.offload-no-host",
     .text = "Where there is no host device, offload is refused as UNSUPPORTED "
             "when sharding, of all units or of one.",
     .level = LEVEL_ERRORS,
     .needs = "run.survives run.ranks-present error.says-why",
     .applies = is_options,
     .check = &check_answers,
     .answers = {{"offload-no-host", FSDP_ERR_UNSUPPORTED},
                 {"offload-of-unit-no-host", FSDP_ERR_UNSUPPORTED}}},
    {0},
};
