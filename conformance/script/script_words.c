/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_words.c - the tables of words that script_words.h declares.
 */
#include "script/script_words.h"

const char *const script_verb_words[SCRIPT_N_VERBS] = {
    [SCRIPT_PASS] = "pass",
    [SCRIPT_EVAL] = "eval",
    [SCRIPT_STEP] = "step",
    [SCRIPT_ZERO] = "zero",
    [SCRIPT_CLIP] = "clip",
    [SCRIPT_LOOK] = "look",
    [SCRIPT_SUMMON] = "summon",
    [SCRIPT_UNSHARD] = "unshard",
    [SCRIPT_RESHARD] = "reshard",
    [SCRIPT_SYNC] = "sync",
    [SCRIPT_SAVE] = "save",
    [SCRIPT_WAIT] = "wait",
    [SCRIPT_LOAD] = "load",
    [SCRIPT_AGAIN] = "again",
    [SCRIPT_ANEW] = "anew",
    [SCRIPT_WRONG] = "!",
    [SCRIPT_REPEAT] = "repeat",
    [SCRIPT_SET] = "set",
    [SCRIPT_UNSHARD_UNIT] = "unshard",
    [SCRIPT_RESHARD_UNIT] = "reshard",
    [SCRIPT_FREEZE] = "freeze",
    [SCRIPT_THAW] = "thaw",
    [SCRIPT_BACKWARD_STEP] = "backward-step",
    [SCRIPT_ASSIGN] = "assign",
    [SCRIPT_SUMMON_SOME] = "summon",
    [SCRIPT_SEND] = "send"};
const char *const script_sync_words[3] = {"", "on", "off"};
const char *const script_ending_words[3] = {"", "until", "left-open"};
const char *const script_form_words[3] = {[FSDP_SAVE_FULL] = "full",
                                          [FSDP_SAVE_SHARDED] = "sharded",
                                          [FSDP_SAVE_LOCAL] = "local"};
const char *const script_knob_words[SCRIPT_N_KNOBS] = {
    [FSDP_KNOB_GRADIENT_SYNC] = "sync",
    [FSDP_KNOB_ALL_REDUCE] = "all-reduce",
    [FSDP_KNOB_RESHARD_AFTER_FORWARD] = "reshard-after-forward",
    [FSDP_KNOB_RESHARD_AFTER_BACKWARD] = "reshard-after-backward",
    [FSDP_KNOB_DIVIDE_FACTOR] = "divide-factor",
    [FSDP_KNOB_PREDIVIDE_FACTOR] = "predivide-factor"};
const char *const script_part_words[SCRIPT_N_PARTS] = {"parameters", "states",
                                                       "buffers", "extra"};
const char *const script_source_words[SCRIPT_N_SOURCES] = {
    [SCRIPT_OF_NUMBER] = "",
    [SCRIPT_INITIAL] = "initial",
    [SCRIPT_SUMMONED] = "summoned"};
const char *const script_edit_words[SCRIPT_N_EDITS] = {
    [SCRIPT_EDIT_TIMES] = "times", [SCRIPT_EDIT_INF] = "inf",
    [SCRIPT_EDIT_NAN] = "nan",     [SCRIPT_EDIT_ZERO] = "zero",
    [SCRIPT_EDIT_TIE] = "tie",     [SCRIPT_EDIT_SUBNORMAL] = "subnormal"};
