/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arguments.h - the options that commands share, parsed and checked: a wrong
 * one is a usage error with one line that says what would be right.
 */
#ifndef FSDP_CTS_ARGUMENTS_H
#define FSDP_CTS_ARGUMENTS_H

#include "cli/line/option_table.h"
#include "judge/requirement.h"
#include "run/supervise.h"

enum {
    ARGUMENTS_MAX = 64
}; /* values of a list */

enum {
    ARGUMENTS_TIMEOUT_MS = 20000 /* the timeout if none is given */
};

struct name_list { /* NULL-ended */
    const char *name[ARGUMENTS_MAX + 1];
    uint32_t n;
};
bool name_list_has(const struct name_list *list, const char *name);
/* Whether a name is in the list, or matches a pattern in it: `*`, `?` and
 * `[...]` stand for letters, as in a shell. */
bool name_list_matches(const struct name_list *list, const char *name);
bool name_is_pattern(const char *name);

struct arguments {
    struct name_list engines, workloads, requirements, cases, strategies;
    uint32_t ranks[ARGUMENTS_MAX + 1], n_ranks;
    uint32_t world; /* enum world_kind */
    const char *launcher, *text, *mutant, *adapter, *script;
    const char *records, *report, *junit, *trace, *pictures;
    const char *html, *against;
    uint32_t level; /* requirements up to this level; N_LEVELS: all */
    uint32_t timeout_ms, jobs;
    bool from_a_seed;             /* --first-seed was given */
    uint32_t n_seeds, first_seed; /* random cases; n_seeds 0: the manifest */
    uint32_t drawn_by;            /* the generator of the random cases */
    uint32_t shard, n_shards;     /* 1..n_shards; n_shards 0: all cases */
    uint32_t seed;                /* the seed of all cases; 0: as in the
                                     manifest */
    uint32_t n_scripts;           /* number of scripts that are drawn, from
                                     `seed` on; 0: none */
    uint32_t script_seed;         /* the seed of the scripts in a whole run; 0:
                                     any */
    const char *write, *check, *fixtures;
    const char *from; /* a report, whose cases are selected */
    bool cover;       /* of the selected cases, as few as have each part of the
                         ids */
    bool failed, last_failed, dry_run, fail_fast;
    const struct case_list *among; /* only these cases; NULL: any. Not owned */
    const char *about, *bundle, *explanations;
    bool partial, without_records, releases;
    bool partial_ok, strict, record_only, report_only, json, quiet, help,
        verbose;
    bool times;
    const char *const *rest; /* the words that are no options */
    int n_rest;
    /* worker only */
    const char *batch;
    uint32_t words, outputs;
    bool trace_events;
    bool isolate, no_isolate, isolated;
    /* Why a whole run does not isolate its ranks; printed once some have
     * run. */
    char not_isolated[96];
    const char *wrap;
    bool wrapped;
    uint32_t debug; /* a rank + 1; 0: none */
    uint32_t sample_ranks;
};

/* Which options a command takes. */
enum {
    TAKES_ENGINE = 1,
    TAKES_SELECTION = 2, /* --workload --ranks --case --strategy --seeds */
    TAKES_JUDGE = 4,     /* --requirement --level --junit --partial-ok */
    TAKES_WORLD = 8,     /* --world --launcher --timeout --jobs */
    TAKES_RECORDS = 16,
    TAKES_TEXT = 32,
    TAKES_JSON = 64,
    TAKES_WORKER = 128,
    TAKES_MUTANT = 256,
    TAKES_RUN = 512,
    TAKES_FIXTURES = 1024,
    TAKES_GOLDEN = 2048,
    TAKES_SEED = 4096,
    TAKES_REPORT = 8192,       /* --report */
    TAKES_REPORT_ONLY = 16384, /* --report-only */
    TAKES_SUBMIT = 65536,
    TAKES_DRAW = 131072,      /* --draw --seed, of scripts */
    TAKES_PAGE = 262144,      /* --against --records, of a report's page */
    TAKES_HTML = 524288,      /* --html */
    TAKES_SCRIPTS = 1048576,  /* --scripts */
    TAKES_RELEASES = 2097152, /* --releases */
};

/* Returns 0; or, after a line on stderr, EXIT_USAGE, or EXIT_OUTPUT if a file
 * that is to be written cannot be. The lists' names point into argv, in which
 * commas are overwritten. */
int arguments_parse(int argc, char **argv, unsigned takes,
                    struct arguments *out);
/* Sets out->seed to a seed that cannot be known beforehand, and says it on
 * stderr as the value to give this option. 0, or EXIT_USAGE: there is none. */
int arguments_fresh_seed(struct arguments *out, const char *option);
/* How cases are run, as the options say. Which cases, by which engine, and
 * where their records go, the caller sets. */
struct supervise_job arguments_job(const struct arguments *a);
/* The i-th name of all; NULL behind the last. */
const char *arguments_mutant(uint32_t i);
const char *arguments_requirement(uint32_t i);
const char *arguments_strategy(uint32_t i);
const char *arguments_level(uint32_t i);
/* Prints the options that a command takes. */
void arguments_help(unsigned takes);

#endif
