/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - the natural logarithm, correctly rounded to float32 (nearest, ties
 * to even) for every float32. The value at -0 is -infinity, as at +0.
 *
 * The logarithms of some floats lie so near the middle between two floats that
 * no double is good enough: with a correct double logarithm, 0x41178feb still
 * rounds the wrong way. So the result is the sum of two doubles with a
 * relative error of about 2^-59, for all inputs alike: no slow path, no list of
 * exceptions. (arith_exhaustive checks all inputs.)
 */
#ifndef FSDP_ARITH_LOG_H
#define FSDP_ARITH_LOG_H

#include "bits.h"
#include "qualify.h"

/*
 * x = 2^k m with m in [0.703125, 1.40625), an interval of 64 pieces. The row of
 * a piece holds c, about 1/m and of 17 bits at most, and -ln c as a multiple of
 * 2^-44 and the rest. In the two pieces that meet at 1, c is 1, so that
 * logarithms near zero keep their relative accuracy.
 */
struct fsdp_log_row {
    double c;
    double high;
    double low;
};

FSDP_ARITH struct fsdp_log_row fsdp_log_row(unsigned int piece)
{
    static const struct fsdp_log_row table[64] = {
        {0x1.6a14p+0, -0x1.6300c0b3a0cp-2, 0x1.b6b54ce7cfcfdp-46},
        {0x1.661fp+0, -0x1.57c0193c8p-2, 0x1.28558d9199412p-49},
        {0x1.624p+0, -0x1.4c9f09e152cp-2, -0x1.e2218f1fd2207p-49},
        {0x1.5e76p+0, -0x1.419c0a3d4bp-2, -0x1.1d29a024ef3ep-48},
        {0x1.5acp+0, -0x1.36b5776bc1p-2, -0x1.169785a9c223fp-46},
        {0x1.571fp+0, -0x1.2bef8bcdc0cp-2, 0x1.98aa07ee41d2fp-47},
        {0x1.5391p+0, -0x1.21459ad0b84p-2, -0x1.69d7e8d250db4p-47},
        {0x1.5015p+0, -0x1.16b5c8bacfcp-2, 0x1.594c8241650a8p-47},
        {0x1.4cacp+0, -0x1.0c444675d4p-2, -0x1.c81dba5bec16cp-47},
        {0x1.4954p+0, -0x1.01ec15623f4p-2, -0x1.230c47da4b709p-47},
        {0x1.460dp+0, -0x1.ef5c864da4p-3, -0x1.a63fd7608d03ap-47},
        {0x1.42d6p+0, -0x1.db116b0ce98p-3, -0x1.f8026f9fd0fd2p-50},
        {0x1.3fbp+0, -0x1.c6ff3c6efdp-3, 0x1.1ecc81aef8128p-48},
        {0x1.3c99p+0, -0x1.b31b3d75698p-3, -0x1.fba9e6b45cda3p-47},
        {0x1.3992p+0, -0x1.9f6dd070628p-3, 0x1.4dcda24e9b063p-46},
        {0x1.3699p+0, -0x1.8bebd6b3848p-3, -0x1.30de1741a6d3bp-49},
        {0x1.33aep+0, -0x1.789708541p-3, -0x1.b95f7596cba76p-46},
        {0x1.30d2p+0, -0x1.6577dbe837p-3, -0x1.1e0711cea311bp-46},
        {0x1.2e02p+0, -0x1.527bee49bc8p-3, 0x1.ba1d5d761d30cp-46},
        {0x1.2b4p+0, -0x1.3fb25a59528p-3, -0x1.95be6b358ff76p-48},
        {0x1.288bp+0, -0x1.2d1608c868p-3, -0x1.f3ad991ae13e8p-48},
        {0x1.25e2p+0, -0x1.1aa1a7e22d8p-3, 0x1.d636059f10dfep-47},
        {0x1.2345p+0, -0x1.0856b35962p-3, -0x1.e24f042812a38p-46},
        {0x1.20b4p+0, -0x1.ec6d582f69p-4, 0x1.b9529bb17c3f3p-46},
        {0x1.1e2fp+0, -0x1.c886301bc1p-4, 0x1.5c9561280d38p-48},
        {0x1.1bb5p+0, -0x1.a4ec940a44p-4, -0x1.eea46af347f71p-46},
        {0x1.1945p+0, -0x1.8194b2f3bdp-4, 0x1.212233d79dd2ep-49},
        {0x1.16ep+0, -0x1.5e8fa4d859p-4, -0x1.c6fce08d710fep-48},
        {0x1.1486p+0, -0x1.3be03a7d19p-4, 0x1.cde68d33e9b6fp-47},
        {0x1.1236p+0, -0x1.197a5d1306p-4, -0x1.b670103676f1cp-47},
        {0x1.0fefp+0, -0x1.eea2fc006cp-5, 0x1.1089f2939f314p-46},
        {0x1.0db2p+0, -0x1.aaeded0faap-5, -0x1.9f82f3521ebf7p-46},
        {0x1.0b7ep+0, -0x1.67bc0f2a8ep-5, 0x1.167b932e892b4p-46},
        {0x1.0954p+0, -0x1.2530b2f8c8p-5, -0x1.07d3ec0431bf5p-46},
        {0x1.0732p+0, -0x1.c625aebcfcp-6, 0x1.d1f597abf44dep-46},
        {0x1.0519p+0, -0x1.430b5251ep-6, 0x1.59c7f2fd37abp-48},
        {0x1.0309p+0, -0x1.82370a37dp-7, -0x1.f54a9c70df78dp-46},
        {0x1p+0, 0.0, 0.0},
        {0x1p+0, 0.0, 0.0},
        {0x1.f446p-1, 0x1.7b9d307e64p-6, -0x1.b8d6f89c4307ep-48},
        {0x1.eccp-1, 0x1.39f07ba0ecp-5, -0x1.4ed629bd1a888p-48},
        {0x1.e574p-1, 0x1.b42857121p-5, 0x1.bde4b7dc0b00bp-49},
        {0x1.de5ep-1, 0x1.164e8eeaf6p-4, -0x1.90c0c28b5ab05p-47},
        {0x1.d77cp-1, 0x1.51ab33f13ep-4, 0x1.e32b4262a3c2ap-51},
        {0x1.d0ccp-1, 0x1.8c2e9d6422p-4, 0x1.8e7fe18d63d66p-47},
        {0x1.ca4cp-1, 0x1.c5de08f761p-4, -0x1.89b523c00fc75p-49},
        {0x1.c3f8p-1, 0x1.fed1932001p-4, -0x1.4e229dd002a1bp-46},
        {0x1.bdd2p-1, 0x1.1b75fd53a6p-3, 0x1.4660db3fc0841p-48},
        {0x1.b7d6p-1, 0x1.37235202b4p-3, 0x1.e0016b63aa4bdp-49},
        {0x1.b204p-1, 0x1.526b7e3a9f8p-3, 0x1.ad3f79a92c397p-50},
        {0x1.ac58p-1, 0x1.6d5c3e7306p-3, 0x1.09cf818d9389ep-46},
        {0x1.a6dp-1, 0x1.87fa8652108p-3, 0x1.1092cab3cc287p-47},
        {0x1.a16ep-1, 0x1.a23811ff05p-3, -0x1.a11476272fd67p-47},
        {0x1.9c2ep-1, 0x1.bc23d74426p-3, -0x1.18e0121214485p-46},
        {0x1.970ep-1, 0x1.d5c3a6b523p-3, -0x1.b72986c8ac76dp-46},
        {0x1.921p-1, 0x1.ef095cbde98p-3, 0x1.360a18e874358p-47},
        {0x1.8d3p-1, 0x1.0402994b4fp-2, 0x1.0370df44d82d4p-48},
        {0x1.886ep-1, 0x1.1059b79b02cp-2, -0x1.5533974d2509dp-47},
        {0x1.83cap-1, 0x1.1c882416d9p-2, -0x1.85f18732f8c06p-46},
        {0x1.7f4p-1, 0x1.2896a13e088p-2, -0x1.5c4bf607a5ab6p-46},
        {0x1.7ad2p-1, 0x1.347e31a98b8p-2, 0x1.d4d9bcbcde742p-46},
        {0x1.767ep-1, 0x1.40428068738p-2, 0x1.8ec102f9bb814p-48},
        {0x1.7242p-1, 0x1.4be77157bc8p-2, 0x1.21e9ac3914a33p-46},
        {0x1.6e2p-1, 0x1.5765f1749dcp-2, -0x1.94cb64f8360abp-46},
    };

    return table[piece];
}

/*
 * Rounds a + b, |b| at most half a unit in the last place of a, to float.
 * Between the two formats stands a rounding to odd: of the two doubles next to
 * the exact sum it takes the odd one, which is never in the middle between two
 * floats and so always on the right side.
 */
FSDP_ARITH float fsdp_f32_from_sum(double a, double b)
{
    /* No branches: the bits they would ask for cannot be predicted. */
    uint64_t bits = fsdp_f64_bits(a);
    uint64_t step = (uint64_t)(b != 0.0) & ~bits & 1;
    uint64_t toward_zero = (bits ^ fsdp_f64_bits(b)) >> 63;

    return (float)fsdp_f64_from_bits(bits + step - 2 * step * toward_zero);
}

/*
 * (ln(1 + r) - r) / r^2 for -2^-7 <= r <= 2^-6, interpolated at the eight
 * Chebyshev nodes; the error is below 2^-61.
 */
FSDP_ARITH double fsdp_log_tail(double r)
{
    double r2 = r * r;
    double q01 = -0x1p-1 + r * 0x1.5555555555557p-2;
    double q23 = -0x1.ffffffffff71ap-3 + r * 0x1.999999994a892p-3;
    double q45 = -0x1.555555a1dc89ap-3 + r * 0x1.249271dc58ecbp-3;
    double q67 = -0x1.fff0bba035b5p-4 + r * 0x1.ba9ca7e764501p-4;

    return (q01 + r2 * q23) + (r2 * r2) * (q45 + r2 * q67);
}

FSDP_ARITH float fsdp_logf(float x)
{
    const uint64_t first = 0x3fe6800000000000u; /* 0.703125 */
    const double ln2_high = 0x1.62e42fefa3ap-1; /* A multiple of 2^-44. */
    const double ln2_low = -0x1.0ca86c3898dp-49;
    const uint64_t exponent = (uint64_t)0xfff << 52;
    uint64_t offset = fsdp_f64_bits((double)x) - first;
    struct fsdp_log_row row = fsdp_log_row((offset >> 46) & 63);
    double k = (double)((int)((offset + ((uint64_t)1024 << 52)) >> 52) - 1024);
    double m = fsdp_f64_from_bits((offset & ~exponent) + first);
    double r;
    double base;
    double high;
    double low;
    double sum;

    if (x == 0.0f) {
        return fsdp_f32_from_bits(FSDP_F32_INFINITY | FSDP_F32_SIGN);
    }
    if (!(x > 0.0f)) {
        return fsdp_f32_nan();
    }
    if (fsdp_f32_bits(x) == FSDP_F32_INFINITY) {
        return x;
    }
    /* Both exact: r needs 41 bits, base at most 51, down to 2^-44. */
    r = m * row.c - 1.0;
    base = k * ln2_high + row.high;
    /* base is 0 or larger than r, so the error of the sum is exact too. */
    high = base + r;
    low = r - (high - base);
    low += (k * ln2_low + row.low) + r * r * fsdp_log_tail(r);
    sum = high + low;
    return fsdp_f32_from_sum(sum, low - (sum - high));
}

#endif
