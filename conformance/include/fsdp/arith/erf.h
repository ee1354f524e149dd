/* SPDX-License-Identifier: Apache-2.0 */
/*
 * erf.h - the error function, correctly rounded to float32 (nearest, ties to
 * even) for every float32, subnormal results included.
 *
 * erf(x) = x q(|x|) for |x| < 4, where q is one of eight polynomials on pieces
 * of width 1/2. The even function erf(x)/x is smooth and never small there, so
 * the product keeps its relative accuracy of about 1.5 units in the last place
 * of the double down to the subnormals; no float32 has its error function
 * within 2.5 such units of the middle between two floats. From 3.92 on, the
 * result is 1. (arith_exhaustive checks all inputs.)
 */
#ifndef FSDP_ARITH_ERF_H
#define FSDP_ARITH_ERF_H

#include "bits.h"
#include "qualify.h"

/*
 * erf(x)/x at x = piece/2 + 1/4 + t, |t| <= 1/4, interpolated at 14 Chebyshev
 * nodes of each piece; the relative error is below 2^-57.
 */
FSDP_ARITH double fsdp_erf_quotient(int piece, double t)
{
    static const double table[8][14] = {
        {0x1.1af54e232d609p+0, -0x1.73070406af8f7p-3, -0x1.57664ffe806dep-2,
         0x1.acf0ba5b49104p-4, 0x1.6cb169fee4c73p-4, -0x1.265cd08570e9cp-5,
         -0x1.2d72a5b3ebe54p-6, 0x1.24caf7abbd879p-7, 0x1.8ec05ec5b359fp-9,
         -0x1.caf1faa91982cp-10, -0x1.b0c4450836138p-12, 0x1.2929cb9c36124p-12,
         0x1.7f5cab80c1812p-15, -0x1.3fc881766dd57p-15},
        {0x1.e57b7477c132ap-1, -0x1.a0cdd9ab35663p-2, -0x1.9a7d8dd5f75e2p-4,
         0x1.5acfc2be8b55fp-3, -0x1.97842b84813b5p-6, -0x1.35e003bdd5bd2p-5,
         0x1.de96cfe0b0ceap-7, 0x1.4ea86531eeddcp-8, -0x1.ea2735e96c269p-9,
         -0x1.3fb8cc1427b2ep-12, 0x1.571a71a5be624p-11, -0x1.55e2ce6b4629cp-15,
         -0x1.654d3cbc0c0c1p-14, 0x1.ebe610bf599d9p-17},
        {0x1.7a0517ad564cdp-1, -0x1.9b12df9c9f1cep-2, 0x1.5aa5390000029p-4,
         0x1.0faa3ba2d5879p-4, -0x1.db07bcfddb37fp-5, 0x1.1b462fd4c5abap-7,
         0x1.4bc7dfe3e14dp-7, -0x1.54be48774685cp-8, -0x1.a20ce7248a784p-12,
         0x1.0ba9a47fe75b8p-10, -0x1.7d7a3aac368ebp-13, -0x1.dc4177a21ae64p-14,
         0x1.8b55e0c4990bbp-15, 0x1.889e01dd8b84ap-18},
        {0x1.20ac0448e30d1p-1, -0x1.2b07a606936a4p-2, 0x1.d3549a3f1bd84p-4,
         -0x1.c0361d5090e1ep-7, -0x1.424946c7bf24ep-6, 0x1.ec5d8e9152f45p-7,
         -0x1.c6170d927af33p-9, -0x1.849ec20013627p-10, 0x1.4b6da6d9925e1p-10,
         -0x1.bb88f37dabc62p-13, -0x1.153998a954bb5p-13, 0x1.2fa1d6c97746p-14,
         -0x1.af1f0a8b67e87p-20, -0x1.276e1aead38d8p-17},
        {0x1.c672068e64fbdp-2, -0x1.8d734c1fef1dcp-3, 0x1.4408c71d2d863p-4,
         -0x1.a1de1a059621bp-6, 0x1.7610514e6ce17p-9, 0x1.c69ab0b939834p-9,
         -0x1.733cc63a7d402p-9, 0x1.f7c0028899859p-11, 0x1.20522f51fbb53p-16,
         -0x1.684e537adc3c8p-13, 0x1.2ae46b96d3942p-14, -0x1.6c85cc9be94b4p-19,
         -0x1.2969d08a415b1p-17, 0x1.b645a6f53f586p-19},
        {0x1.74537fc603cfbp-2, -0x1.0e5896d12aaf3p-3, 0x1.846d86b723adp-5,
         -0x1.0a0c0d51b37e4p-6, 0x1.355523835c9acp-8, -0x1.767b30007b6cp-11,
         -0x1.6796ee22e2a09p-12, 0x1.7918726996605p-12, -0x1.5621d1d5cb6dep-13,
         0x1.186332f4baffcp-15, 0x1.076c2208da61p-17, -0x1.211bf016b08f2p-17,
         0x1.6691b63070b76p-19, 0x1.8565f1f5c5689p-28},
        {0x1.3b135862188d2p-2, -0x1.83bf9f6f554bp-4, 0x1.dcc02f5d976bcp-6,
         -0x1.23692b411d709p-7, 0x1.5b1a27bd1594dp-9, -0x1.7894c29485fa9p-11,
         0x1.256f761c72228p-13, 0x1.367612e3f4138p-17, -0x1.d53ec7f44edcbp-16,
         0x1.16280aca1c09ap-16, -0x1.8689682aa17d4p-18, 0x1.e7f4ec8dc66p-21,
         0x1.5bf105a9a4d09p-22, -0x1.1b5bdfa86fd29p-22},
        {0x1.11110f080c546p-2, -0x1.234526458097ep-4, 0x1.36ac76646eecbp-6,
         -0x1.4b3ef89efcd68p-8, 0x1.605c898b85f06p-10, -0x1.72b720a33d9a1p-12,
         0x1.75df9f3b93b96p-14, -0x1.45fbe447c09e5p-16, 0x1.292362ae626f4p-19,
         0x1.16d0f1994fad7p-20, -0x1.04bacd912e8acp-20, 0x1.f43197fdb3e62p-22,
         -0x1.3bedcc3aa1accp-23, 0x1.8d32d72779ac6p-26},
    };
    const double *c = table[piece];
    double t2 = t * t;
    double t4 = t2 * t2;
    double q03 = (c[0] + t * c[1]) + t2 * (c[2] + t * c[3]);
    double q47 = (c[4] + t * c[5]) + t2 * (c[6] + t * c[7]);
    double q8b = (c[8] + t * c[9]) + t2 * (c[10] + t * c[11]);
    double qcd = c[12] + t * c[13];

    return q03 + t4 * (q47 + t4 * (q8b + t4 * qcd));
}

FSDP_ARITH float fsdp_erff(float x)
{
    uint32_t sign = fsdp_f32_bits(x) & FSDP_F32_SIGN;
    double magnitude = (double)fsdp_f32_from_bits(fsdp_f32_bits(x) ^ sign);
    int piece;

    if (x != x) {
        return fsdp_f32_nan();
    }
    if (magnitude >= 4.0) {
        return fsdp_f32_from_bits(FSDP_F32_ONE | sign);
    }
    piece = (int)(2.0 * magnitude);
    return (float)((double)x *
                   fsdp_erf_quotient(piece, magnitude - (0.5 * piece + 0.25)));
}

#endif
