/* SPDX-License-Identifier: Apache-2.0 */
/*
 * presets.c - the files are part of the program, so that it needs no path.
 */
#include "tools/plan/presets.h"

#include <stddef.h>
#include <string.h>

/* A declaration has no parentheses.
 * NOLINTBEGIN(bugprone-macro-parentheses) */
#define EMBED(symbol, file)                                               \
    __asm__(".section .rodata\n" #symbol ":\n.incbin \"" FSDP_PLAN_FOLDER \
            "/" file ".json\"\n.byte 0\n.previous\n");                    \
    extern const char symbol[]
/* NOLINTEND(bugprone-macro-parentheses) */

EMBED(plan_llama2_7b, "models/llama2-7b");
EMBED(plan_llama2_13b, "models/llama2-13b");
EMBED(plan_llama2_70b, "models/llama2-70b");
EMBED(plan_llama3_8b, "models/llama3-8b");
EMBED(plan_llama3_70b, "models/llama3-70b");
EMBED(plan_llama3_405b, "models/llama3-405b");
EMBED(plan_gpt2, "models/gpt2");
EMBED(plan_gpt2_xl, "models/gpt2-xl");
EMBED(plan_gpt_175b, "models/gpt-175b");
EMBED(plan_t5_large, "models/t5-large");
EMBED(plan_t5_3b, "models/t5-3b");
EMBED(plan_t5_11b, "models/t5-11b");

const struct preset preset_models[] = {
    {"llama2-7b", plan_llama2_7b},
    {"llama2-13b", plan_llama2_13b},
    {"llama2-70b", plan_llama2_70b},
    {"llama3-8b", plan_llama3_8b},
    {"llama3-70b", plan_llama3_70b},
    {"llama3-405b", plan_llama3_405b},
    {"gpt2", plan_gpt2},
    {"gpt2-xl", plan_gpt2_xl},
    {"gpt-175b", plan_gpt_175b},
    {"t5-large", plan_t5_large},
    {"t5-3b", plan_t5_3b},
    {"t5-11b", plan_t5_11b},
    {NULL, NULL},
};

EMBED(plan_a100, "clusters/a100");
EMBED(plan_h100, "clusters/h100");
EMBED(plan_h100_96gb, "clusters/h100-96gb");
EMBED(plan_h200, "clusters/h200");

const struct preset preset_clusters[] = {
    {"a100", plan_a100}, {"h100", plan_h100}, {"h100-96gb", plan_h100_96gb},
    {"h200", plan_h200}, {NULL, NULL},
};

const char *preset_find(const struct preset *list, const char *name)
{
    for (; list->name; list++) {
        if (strcmp(list->name, name) == 0) {
            return list->text;
        }
    }
    return NULL;
}
