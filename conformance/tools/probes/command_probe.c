/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_probe.c - reads the logs of probes (docs/probes.md), and judges the
 * counts and bytes of a program that uses nothing of ours.
 */
#include "cases/case.h"
#include "cli/commands.h"
#include "cli/line/arguments.h"
#include "tools/probes/probe_launch.h"
#include "tools/probes/probe_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: fsdp-cts probe LOG ... [OPTION ...]\n"
    "       fsdp-cts probe --torch FOLDER PROGRAM [ARGUMENT ...]\n\n"
    "LOG: a log that a probe wrote, or a folder of them. Prints the "
    "collectives of\neach rank by kind, type and size, and the peaks of its "
    "memory. With --units the\nprogram is judged: each rank must have made the "
    "collectives of such a model, no\nmore. --torch starts a program of "
    "PyTorch as it is, whose ranks write logs into\nFOLDER. See "
    "docs/probes.md.\n\n"
    "example:\n"
    "  fsdp-cts probe --torch logs torchrun --nproc-per-node 2 train.py\n"
    "  fsdp-cts probe logs/ --units 4160x2 --steps 3 --in-steps\n"
    "\n";

static const char ending[] =
    "\n"
    "exit: 0 as expected, or nothing was; 1 not as expected; 2 a rank has no "
    "log, or\na log no end; 64 usage error; 65 bad data\n";

struct options {
    struct probe_expect expect;
    uint64_t peak;
    uint32_t strategy;
    bool judges, json, help;
};

#define AT(field) .at = offsetof(struct options, field)

/* The number that text begins with, up to one of the characters in `stop`. */
static bool number(const char **text, const char *stop, uint64_t most,
                   uint64_t *out)
{
    return option_digits(*text, out, text) && *out <= most &&
           strchr(stop, **text);
}

static int take_units(const struct option_row *row, char *value, void *options)
{
    const uint64_t most = (uint64_t)1 << 48;
    struct probe_expect *e = option_field(row, options);
    const char *at = value;

    e->n_units = 0;
    for (;;) {
        uint64_t n = 0;
        uint64_t times = 1;
        if (!number(&at, "x,", most, &n) ||
            (*at == 'x' &&
             (at++, !number(&at, ",", PROBE_MAX_UNITS, &times))) ||
            times == 0 || times > PROBE_MAX_UNITS - e->n_units) {
            return option_wrong(row, value);
        }
        while (times-- > 0) {
            e->unit[e->n_units++] = n;
        }
        if (*at == '\0') {
            return 0;
        }
        at++;
    }
}

static int take_also(const struct option_row *row, char *value, void *options)
{
    struct probe_expect *e = option_field(row, options);
    struct probe_count *c = &e->also[e->n_also];
    const char *at = strchr(value, ':');
    char kind[32];

    snprintf(kind, sizeof(kind), "%.*s", (int)strcspn(value, ":"), value);
    if (e->n_also == PROBE_MAX_ALSO || !at ||
        !case_value(probe_kind_name, kind, &c->kind) ||
        (at++, !number(&at, ":", (uint64_t)1 << 48, &c->n)) || *at != ':' ||
        (at++, !number(&at, ":", UINT32_MAX, &c->calls))) {
        return option_wrong(row, value);
    }
    c->dtype = c->kind == PROBE_BARRIER ? PROBE_NONE : PROBE_F32;
    if (*at == ':' && !case_value(probe_dtype_name, at + 1, &c->dtype)) {
        return option_wrong(row, value);
    }
    e->n_also++;
    return 0;
}

static int take_sync(const struct option_row *row, char *value, void *options)
{
    const size_t n = strlen(value);

    return n >= 1 && n <= 64 && strspn(value, "sn") == n && value[n - 1] == 's'
               ? option_text(row, value, options)
               : option_wrong(row, value);
}

static const struct option_row rows[] = {
    {"units", "N,...", 0,
     "elements of each unit, in the order of the forward; NxTIMES: equal ones",
     take_units, AT(expect),
     .right = "elements of at most 4096 units, as 4096,1024x8"},
    {"steps", "N", 0, "training steps of the run (with --units)",
     option_number64, AT(expect.steps), .least = 1, .most = UINT32_MAX},
    {"strategy", "S", 0,
     "full-shard (default), shard-grad-op, no-shard, hybrid-shard or "
     "hybrid-shard-zero2",
     option_name, AT(strategy), .nth = case_strategy_name},
    {"replicas", "R", 0, "of the two hybrid ones", option_number,
     AT(expect.replicas), .least = 1, .most = INT32_MAX},
    {"keep-root", NULL, 0, "the first unit is not resharded after its forward",
     option_flag, AT(expect.keep_root)},
    {"sync", "LETTERS", 0, "a letter a microbatch: s reduced, n not (s)",
     take_sync, AT(expect.sync), .right = "letters s and n, s the last"},
    {"dtype", "D", 0, "of parameters, as f32 (default), bf16, u8", option_name,
     AT(expect.dtype), .nth = probe_dtype_name},
    {"reduce-dtype", "D", 0, "of gradients (that of parameters)", option_name,
     AT(expect.reduce_dtype), .nth = probe_dtype_name},
    {"also", "KIND:N:CALLS[:D]", 0,
     "what else each rank does in the whole run, over all ranks, as "
     "all-reduce:1:10 for ten losses",
     take_also, AT(expect),
     .right = "KIND:N:CALLS[:D], as all-reduce:1:10 or broadcast:64:1:i32"},
    {"in-steps", NULL, 0,
     "look only at what is between a mark 'step N' and its 'after step N', or "
     "the next step",
     option_flag, AT(expect.in_steps)},
    {"messages-ok", NULL, 0, "there may be messages beside the collectives",
     option_flag, AT(expect.messages_ok)},
    {"peak-at-most", "BYTES", 0, "of each log of memory", option_number64,
     AT(peak), .most = INT64_MAX, .right = "a number of bytes"},
    {"json", NULL, 0, "print JSON", option_flag, AT(json)},
    {"help", NULL, 0, "this text", option_flag, AT(help)},
};
static const struct option_table table = OPTION_TABLE(rows);

static int parse(int argc, char **argv, struct options *o, int *rest)
{
    struct probe_expect *e = &o->expect;
    const int code = options_read(&table, argc, argv, o, rest);

    if (code != 0 || o->help) {
        return code;
    }
    if (e->reduce_dtype == PROBE_NONE) {
        e->reduce_dtype = e->dtype;
    }
    e->reshard =
        o->strategy == CASE_FULL_SHARD || o->strategy == CASE_HYBRID_SHARD;
    e->shards = o->strategy != CASE_NO_SHARD;
    o->judges = e->n_units > 0;
    if (o->judges != (e->steps > 0)) {
        return option_refuse("--units and --steps go together");
    }
    return *rest < argc ? 0
                        : option_refuse("needs a LOG, or a folder of them; "
                                        "see: fsdp-cts probe --help");
}

static int say(const struct options *o, const struct probe_verdict *v)
{
    bool judged = o->judges || o->peak != PROBE_UNKNOWN;
    int code = v->differs      ? EXIT_NOT_CONFORMANT
               : v->incomplete ? EXIT_INCOMPLETE
                               : EXIT_CONFORMANT;

    for (uint32_t i = 0; i < v->n && i < PROBE_MAX_FINDINGS; i++) {
        printf("%s\n", v->finding[i]);
    }
    if (v->n > PROBE_MAX_FINDINGS) {
        printf("and %u more\n", v->n - PROBE_MAX_FINDINGS);
    }
    if (judged) {
        printf("%s\n", code == EXIT_CONFORMANT       ? "AS EXPECTED"
                       : code == EXIT_NOT_CONFORMANT ? "NOT AS EXPECTED"
                                                     : "INCOMPLETE");
    }
    return code;
}

static int say_json(const struct options *o, const struct probe_logs *logs,
                    const struct probe_verdict *v)
{
    json_t *findings = json_array();
    const char *verdict = v->differs      ? "not-as-expected"
                          : v->incomplete ? "incomplete"
                                          : "as-expected";
    int code = v->differs ? 1 : v->incomplete ? 2 : 0;

    for (uint32_t i = 0; i < v->n && i < PROBE_MAX_FINDINGS; i++) {
        (void)json_array_append_new(findings, json_string(v->finding[i]));
    }
    json_t *root =
        json_pack("{s:o, s:o, s:o}", "logs", probe_show_json(logs), "findings",
                  findings, "verdict",
                  o->judges || o->peak != PROBE_UNKNOWN ? json_string(verdict)
                                                        : json_null());
    if (!root || json_dumpf(root, stdout, JSON_INDENT(1)) != 0) {
        fprintf(stderr, "fsdp-cts probe: out of memory, or standard output "
                        "is closed\n");
        code = EXIT_BAD_DATA;
    }
    printf("\n");
    json_decref(root);
    return code;
}

static int probe(const struct options *o, const char *const *path, uint32_t n)
{
    struct fsdp_error error = {0};
    struct probe_logs logs;
    struct probe_verdict *verdict = calloc(1, sizeof(*verdict));
    int code = EXIT_BAD_DATA;
    int status =
        !verdict ? FSDP_ERR_NOMEM : probe_logs_read(path, n, &logs, &error);

    if (status == FSDP_OK) {
        status =
            probe_judge(&logs, o->judges ? &o->expect : NULL, o->peak, verdict);
    }
    if (status == FSDP_ERR_INVALID) {
        code = option_refuse("--replicas: the world's ranks are no multiple of "
                             "them");
    } else if (status == FSDP_OK && o->json) {
        code = say_json(o, &logs, verdict);
    } else if (status == FSDP_OK) {
        status = probe_show_text(&logs);
        code = status == FSDP_OK ? say(o, verdict) : code;
    }
    if (status != FSDP_OK && status != FSDP_ERR_INVALID) {
        fprintf(stderr, "fsdp-cts: %s\n",
                error.message[0] ? error.message : fsdp_status_text(status));
    }
    if (verdict) {
        probe_logs_release(&logs);
    }
    free(verdict);
    return code;
}

int command_probe(int argc, char **argv)
{
    struct options *o;
    int rest;
    int code;

    if (argc > 1 && strcmp(argv[1], "--torch") == 0) {
        return probe_launch(argv + 2);
    }
    o = calloc(1, sizeof(*o));
    if (!o) {
        fprintf(stderr, "fsdp-cts: out of memory\n");
        return EXIT_BAD_DATA;
    }
    o->peak = PROBE_UNKNOWN;
    o->expect.sync = "s";
    o->expect.dtype = PROBE_F32;
    o->expect.replicas = 1;
    code = parse(argc, argv, o, &rest);
    if (o->help && code == 0) {
        fputs(usage, stdout);
        options_help(&table);
        fputs(ending, stdout);
    } else if (code == 0) {
        code =
            probe(o, (const char *const *)argv + rest, (uint32_t)(argc - rest));
    }
    free(o);
    return code;
}
