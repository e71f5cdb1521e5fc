/* SPDX-License-Identifier: Apache-2.0 */
/* Draws against a law: chi-square with rare values put together. Include after cmocka.h and math.h. */
#ifndef CV_TESTS_SAMPLER_LAW_H
#define CV_TESTS_SAMPLER_LAW_H

/* The value that a chi-square of `df` degrees of freedom passes with probability 10^-5 (Wilson and Hilferty 1931). */
static inline double critical(int df) {
  double a = 2.0 / (9.0 * df);
  return df * pow(1 - a + 4.265 * sqrt(a), 3);
}

/* count[i] of `draws` draws gave value i, which has probability p[i]; neighbouring values share a cell until 10 are
 * expected. */
static inline void assert_law(const uint64_t *count, const double *p, int values, double draws, const char *what) {
  double sum = 0, expected = 0, found = 0, left = draws;
  int cells = 0;
  for (int i = 0; i < values; i++) {
    expected += draws * p[i];
    found += (double)count[i];
    left -= draws * p[i];
    if ((expected >= 10 && left >= 10) || i == values - 1) {
      sum += expected > 0 ? (found - expected) * (found - expected) / expected : found;
      cells++;
      expected = found = 0;
    }
  }
  if (cells > 1 ? sum > critical(cells - 1) : sum > 1e-6) {
    fail_msg("%s: chi-square %.1f in %d cells", what, sum, cells);
  }
}

static inline double binomial_probability(double n, double p, double k) {
  return exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log1p(-p));
}

#endif
