/* SPDX-License-Identifier: Apache-2.0 */
/* Polynomials over Field64 that are given by their values at roots of unity: the draft's Lagrange basis. */
#ifndef CV_PRIO_POLY_H
#define CV_PRIO_POLY_H

#include <stddef.h>
#include <stdint.h>

/*
 * n times the value at x of the polynomial of degree below n whose value at w^i is value[i]. n is a power of two, w the
 * principal n-th root of unity. inverse_root[i * stride] is w^-i, i < n/2. Overwrites value[].
 */
uint64_t cv_poly_eval(uint64_t *value, size_t n, const uint64_t *inverse_root, size_t stride, uint64_t x);

/* The value at w^(n-1) of the polynomial of degree below n - 1 whose other values are value[0 .. n-2]; n >= 2, and
 * inverse_root[i] is w^-i. */
uint64_t cv_poly_last(const uint64_t *value, size_t n, const uint64_t *inverse_root);

/*
 * The values of a polynomial of degree below n at w^0, w^2, w^4, ... become those at w^1, w^3, w^5, ...; w is the
 * principal (2 n)-th root of unity, inverse_root[i] is w^-i, i < n, and `share_of_one` is 1/n.
 */
void cv_poly_between(uint64_t *value, size_t n, const uint64_t *inverse_root, uint64_t share_of_one);

#endif
