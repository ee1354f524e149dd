/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_value.c - computes the values that a script assigns: it names them by
 * a number.
 */
#include "script/script.h"

float script_value(uint32_t number, uint32_t p, uint64_t i)
{
    uint64_t x = ((uint64_t)number << 40) + ((uint64_t)p << 32) + i;

    /* The finalizer of splitmix64. */
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return (float)((int32_t)(x & 255) - 128) * 0x1p-10f;
}
