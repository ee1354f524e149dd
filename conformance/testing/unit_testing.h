/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit_testing.h - CMocka, with the headers that it wants to come first. Every
 * test in C includes it. Test only.
 */
#ifndef FSDP_CTS_UNIT_TESTING_H
#define FSDP_CTS_UNIT_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A test that CMocka is to give nothing to: UNIT_TEST(name) and its body. */
#define UNIT_TEST(name) \
    static void name(__attribute__((unused)) void **of_cmocka)

#endif
