/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_case.c - case.json: which case, which engine, and how its ranks
 * ended.
 */
#include "cases/case_script.h"
#include "record/record_internal.h"
#include "script/script.h"

#include <stdlib.h>
#include <string.h>

/* Which microbatches are reduced, a letter for each: "nns". */
static bool read_sync(struct record_json *j, struct record_field at, json_t *v,
                      const struct record_row *row, void *base)
{
    struct run_case *const c = base;
    char text[CASE_MAX_MICROBATCHES + 1];
    const struct record_row letters = {.key = row->key, .room = sizeof(text)};

    if (!record_string.read(j, at, v, &letters, text)) {
        return false;
    }
    while (text[c->microbatches] != '\0') {
        const char s = text[c->microbatches];

        if (s != 's' && s != 'n') {
            return record_refuse(j, at, "letters s and n were expected");
        }
        c->sync[c->microbatches++] = s == 's';
    }
    return true;
}

static void write_sync(struct record_text *t, const struct record_row *row,
                       const void *base)
{
    char text[CASE_MAX_MICROBATCHES + 1];

    (void)row;
    case_sync_text(base, text);
    record_text_add(t, "\"%s\"", text);
}

static const struct record_type sync_letters = {read_sync, write_sync};

/* What the case plays: the name of a scenario, or the text of a script, with
 * semicolons in place of line ends. */
static bool plays_none(const void *base)
{
    return !case_is_script(base);
}

static bool keeps_all(const void *base)
{
    return ((const struct run_case *)base)->recompute == WORKLOAD_KEEPS;
}

static bool is_f32(const void *base)
{
    const struct run_case *const c = base;

    return c->precision == CASE_F32;
}

static bool trains_all(const void *base)
{
    return ((const struct run_case *)base)->frozen == WORKLOAD_TRAINS_ALL;
}

static bool is_usual(const void *base)
{
    return ((const struct run_case *)base)->factors == CASE_USUAL_FACTORS;
}

static bool is_not_offloaded(const void *base)
{
    return ((const struct run_case *)base)->offload == CASE_NOT_OFFLOADED;
}

static bool read_script(struct record_json *j, struct record_field at,
                        json_t *v, const struct record_row *row, void *base)
{
    struct run_case *const c = base;
    const char *const text = json_string_value(v);
    const struct case_script *s = NULL;
    struct fsdp_error error = {0};

    (void)row;
    if (!text || !case_is_script(c)) {
        return record_refuse(j, at, "a script was not expected");
    }
    s = case_script_find(text);
    if (!s && script_give(text, &s, &error) != FSDP_OK) {
        return record_refuse(j, at, "%.100s", error.message);
    }
    snprintf(c->script, sizeof(c->script), "%s", s->name);
    return true;
}

static void write_script(struct record_text *t, const struct record_row *row,
                         const void *base)
{
    const struct run_case *const c = base;
    const struct case_script *const s = case_script_find(c->script);
    char *const text = s && s->given ? strdup(s->text) : NULL;

    (void)row;
    for (char *p = text; p && (p = strchr(p, '\n'));) {
        *p++ = ';';
    }
    record_text_string(t, text ? text : c->script,
                       text ? strlen(text) : sizeof(c->script) - 1);
    free(text);
}

static const struct record_type script_text_or_name = {read_script,
                                                       write_script};

/* Checks that the case can be one, and is the case whose id the file has. */
static bool check_run_case(struct record_json *j, void *base)
{
    const char *const wrong = case_check(base);
    const struct record *const r = j->context;
    char id[CASE_ID_BYTES];

    if (wrong) {
        return record_refuse(j, j->at, "%s", wrong);
    }
    case_id(base, id);
    return strcmp(id, r->id) == 0 ||
           record_refuse(j, record_field("id"), "the case's is %.100s", id);
}

#define AT(member) RECORD_AT(struct run_case, member)
static const struct record_row run_case_rows[] = {
    {"workload", &record_string, AT(workload)},
    {"size", &record_string, AT(size)},
    {"data", &record_name, AT(data), .name = case_data_name},
    {"scenario", &record_name, AT(scenario), .name = case_scenario_name},
    {"seed", &record_u64, AT(seed)},
    {"strategy", &record_name, AT(strategy), .name = case_strategy_name},
    {"ranks", &record_u32, AT(ranks)},
    {"replicas", &record_u32, AT(replicas)},
    {"layout", &record_name, AT(layout), .name = case_layout_name},
    {"wrap", &record_name, AT(wrap), .name = case_wrap_name},
    {"fold", &record_name, AT(fold), .name = case_fold_name},
    {"grains", &record_u32, AT(grains)},
    {"keep_root", &record_flag, AT(keep_root)},
    {"sync", &sync_letters, AT(sync)},
    {"optimizer", &record_name, AT(optimizer), .name = case_optimizer_name},
    {"lr", &record_real, AT(lr)},
    {"weight_decay", &record_real, AT(weight_decay)},
    {"divide_factor", &record_real, AT(divide_factor)},
    {"prefetch_forward", &record_u32, AT(prefetch_forward)},
    {"prefetch_backward", &record_u32, AT(prefetch_backward)},
    {"reduces_in_flight", &record_u32, AT(reduces_in_flight)},
    {"recompute", &record_name, AT(recompute), .name = case_recompute_name,
     .optional = true, .absent = keeps_all},
    {"frozen", &record_name, AT(frozen), .name = case_frozen_name,
     .optional = true, .absent = trains_all},
    {"steps", &record_u32, AT(steps)},
    {"recorded_steps", &record_u32, AT(recorded_steps)},
    {"precision", &record_name, AT(precision), .name = case_precision_name,
     .optional = true, .absent = is_f32},
    {"factors", &record_name, AT(factors), .name = case_factors_name,
     .optional = true, .absent = is_usual},
    {"offload", &record_name, AT(offload), .name = case_offload_name,
     .optional = true, .absent = is_not_offloaded},
    {"script", &script_text_or_name, AT(script), .optional = true,
     .absent = plays_none},
};
#undef AT
const struct record_table record_run_case = {RECORD_ROWS(run_case_rows),
                                             .prefix = "case.", .line = "\n  ",
                                             .check = check_run_case};

#define AT(member) RECORD_AT(struct record_weight, member)
static const struct record_row weight_rows[] = {
    {"weighed", &record_flag, AT(weighed)},
    {"own_device", &record_flag, AT(own_device)},
    {"status", &record_i32, AT(status)},
    {"steps", &record_u32, AT(steps)},
    {"shard", &record_u64, AT(shard)},
    {"opened", &record_u64, AT(opened)},
    {"rest", &record_u64, AT(rest)},
    {"peak", &record_u64, AT(peak)},
    {"half", &record_u64, AT(half)},
    {"last", &record_u64, AT(last)},
    {"files", &record_u64, AT(files)},
    {"room", &record_u64, AT(room)},
    {"bounded", &record_i32, AT(bounded)},
    {"why", &record_string, AT(why)},
};
#undef AT

static bool check_weight(struct record_json *j, void *base)
{
    const struct record_weight *const w = base;

    return w->weighed != 0 ||
           record_refuse(j, record_field("ranks.weight"), "was not weighed");
}

static const struct record_table weight_table = {
    RECORD_ROWS(weight_rows), .prefix = "ranks.weight.", .check = check_weight};

static bool is_not_weighed(const void *base)
{
    return ((const struct record_rank *)base)->weight.weighed == 0;
}

#define AT(member) RECORD_AT(struct record_traffic_row, member)
static const struct record_row traffic_row_rows[] = {
    {"kind", &record_name_or_number, AT(kind), .name = record_collective_name},
    {"dim", &record_name_or_number, AT(dim), .name = record_dim_name},
    {"dtype", &record_name_or_number, AT(dtype), .name = record_dtype_name},
    {"calls", &record_u64, AT(calls)},
    {"n", &record_u64, AT(n)},
};
#undef AT
static const struct record_table traffic_row_table = {
    RECORD_ROWS(traffic_row_rows), .size = sizeof(struct record_traffic_row),
    .tuple = true};

#define AT(member) RECORD_AT(struct record_traffic, member)
static const struct record_row traffic_rows[] = {
    {"exchanges", &record_u64, AT(exchanges)},
    {"exchanged", &record_u64, AT(exchanged)},
    {"amid", &record_u64, AT(amid)},
    {"mismatches", &record_u64, AT(mismatches)},
    {"order", &record_u64, AT(order)},
    {"rows", &record_short_list,
     RECORD_LIST(struct record_traffic, row, n_rows),
     .most = RECORD_TRAFFIC_ROWS, .table = &traffic_row_table},
};
#undef AT
static const struct record_table traffic_table = {RECORD_ROWS(traffic_rows),
                                                  .prefix = "ranks.traffic."};

static bool check_account(struct record_json *j, void *base)
{
    const struct record_account *const a = base;

    return a->known != 0 ||
           record_refuse(j, record_field("ranks.traffic"), "is not known");
}

static bool has_no_payloads(const void *base)
{
    return ((const struct record_account *)base)->n_payloads == 0;
}

static bool has_no_digests(const void *base)
{
    return ((const struct record_account *)base)->n_digests == 0;
}

static const struct record_row payload = {.type = &record_u64,
                                          .room = sizeof(uint64_t)};

#define AT(member) RECORD_AT(struct record_account, member)
static const struct record_row account_rows[] = {
    {"known", &record_flag, AT(known)},
    {"own", &record_flag, AT(own)},
    {"recorded", &record_object, AT(recorded), .table = &traffic_table},
    {"carried", &record_object, AT(carried), .table = &traffic_table},
    {"payloads", &record_list,
     RECORD_LIST(struct record_account, payload, n_payloads),
     .most = RECORD_PAYLOADS, .each = &payload, .optional = true,
     .absent = has_no_payloads},
    {"digests", &record_list,
     RECORD_LIST(struct record_account, digest, n_digests),
     .most = RECORD_PAYLOADS, .each = &payload, .optional = true,
     .absent = has_no_digests},
};
#undef AT
static const struct record_table account_table = {RECORD_ROWS(account_rows),
                                                  .prefix = "ranks.traffic.",
                                                  .check = check_account};

static bool is_unknown(const void *base)
{
    return ((const struct record_rank *)base)->account.known == 0;
}

static bool is_drawn(const void *base)
{
    return !((const struct record_rank *)base)->unsampled;
}

#define AT(member) RECORD_AT(struct record_rank, member)
static const struct record_row end_rows[] = {
    {"end", &record_name, AT(end), .name = record_end_name},
    {"exit_status", &record_i32, AT(exit_status)},
    {"signal", &record_u32, AT(signal), .most = 255},
    {"collectives", &record_u64, AT(n_collectives)},
    {"in_collective", &record_flag, AT(in_collective)},
    {"last_kind", &record_name_or_number, AT(last_kind),
     .name = record_collective_name},
    {"last_unit", &record_name_or_number, AT(last_unit),
     .name = record_unit_name},
    {"weight", &record_object, AT(weight), .table = &weight_table,
     .optional = true, .absent = is_not_weighed},
    {"traffic", &record_object, AT(account), .table = &account_table,
     .optional = true, .absent = is_unknown},
    {"unsampled", &record_flag, AT(unsampled), .optional = true,
     .absent = is_drawn},
};
#undef AT
static const struct record_table end_table = {
    RECORD_ROWS(end_rows), .size = sizeof(struct record_rank),
    .check = record_end_agrees};

/* A record in memory need not have an id: it is made of the case's fields. */
static void write_id(struct record_text *t, const struct record_row *row,
                     const void *base)
{
    char id[CASE_ID_BYTES];

    (void)row;
    case_id(&((const struct record *)base)->c, id);
    record_text_add(t, "\"%s\"", id);
}

static void as_many_as_ranks(const struct record_json *j, uint64_t *least,
                             uint64_t *most)
{
    *least = *most = ((const struct record *)j->context)->c.ranks;
}

/* Checks the world: one of this suite's, or the adapters'. */
static bool check_world(struct record_json *j, void *base)
{
    static const char *const worlds[] = {"local", "threads", "mpi",
                                         RECORD_ADAPTER_WORLD};

    for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
        if (strcmp(((const struct record *)base)->world, worlds[i]) == 0) {
            return true;
        }
    }
    return record_refuse(j, record_field("world"), "there is no such world");
}

#define AT(member) RECORD_AT(struct record_refusal, member)
static const struct record_row refusal_rows[] = {
    {"rank", &record_u32, AT(rank), .most = WORLD_MAX_RANKS - 1},
    {"call", &record_string, AT(call)},
};
#undef AT
static const struct record_table refusal_table = {
    RECORD_ROWS(refusal_rows), .size = sizeof(struct record_refusal),
    .tuple = true};

static bool is_not_isolated(const void *base)
{
    return ((const struct record *)base)->isolation[0] == '\0';
}

static bool was_refused_nothing(const void *base)
{
    return ((const struct record *)base)->n_refusals == 0;
}

#define AT(member) RECORD_AT(struct record, member)
static const struct record_row case_rows[] = {
    {"version", &record_version, .most = RECORD_VERSION},
    {"id", &record_string, AT(id), .write = write_id},
    {"engine", &record_string, AT(engine)},
    {"engine_version", &record_string, AT(engine_version)},
    {"world", &record_string, AT(world)},
    {"isolation", &record_string, AT(isolation), .optional = true,
     .absent = is_not_isolated},
    {"refused", &record_short_list,
     RECORD_LIST(struct record, refusal, n_refusals), .most = RECORD_REFUSALS,
     .table = &refusal_table, .optional = true, .absent = was_refused_nothing},
    {"claims", &record_list, RECORD_LIST(struct record, claim, n_claims),
     RECORD_STRINGS(struct record, claim), .most = RECORD_MAX_CLAIMS},
    {"case", &record_object, AT(c), .table = &record_run_case},
    {"ranks", &record_list, RECORD_LIST(struct record, rank, n_ranks),
     .table = &end_table, .bounds = as_many_as_ranks, .line = "\n  "},
};
#undef AT
const struct record_table record_case_table = {
    RECORD_ROWS(case_rows), .prefix = "", .line = "\n ", .check = check_world};

int record_parse_case(const char *text, size_t bytes, const char *file,
                      struct record *out, struct fsdp_error *error)
{
    memset(out, 0, sizeof(*out));
    return record_parse(text, bytes, file, &record_case_table, out, out, error);
}

/* Why r cannot be written; NULL: it can. */
static const char *check_record(const struct record *r)
{
    const char *const wrong = case_check(&r->c);

    if (wrong) {
        return wrong;
    }
    if (r->n_ranks != r->c.ranks) {
        return "the record has another number of ranks than its case";
    }
    if (!r->rank || r->n_claims > RECORD_MAX_CLAIMS ||
        (r->n_claims != 0 && !r->claim)) {
        return "the record has no ranks, or too many claims, or none";
    }
    for (uint32_t i = 0; i < r->n_ranks; i++) {
        if (!record_end_name(r->rank[i].end) || r->rank[i].signal > 255) {
            return "a rank's end or signal is not in its list";
        }
    }
    return NULL;
}

int record_write_case(const char *directory, const struct record *r,
                      struct fsdp_error *error)
{
    const char *const wrong = check_record(r);
    char path[RECORD_PATH_BYTES];

    if (wrong) {
        return record_fail(error, FSDP_ERR_INVALID, "record_write", "%s",
                           wrong);
    }
    FSDP_TRY(record_make_directory(directory, error));
    FSDP_TRY(record_path(path, directory, "case.json", error));
    return record_save(&record_case_table, r, path, error);
}
