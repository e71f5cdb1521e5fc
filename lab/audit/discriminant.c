/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/audit/discriminant.h"

#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/base/grid.h"

/* Share of the largest variance that is added to every variance: makes the matrix regular, and lets the solution use
 * sums that do not vary at all. */
static const double RIDGE = 1e-10;
/* Weights below this share of the largest become 0. */
static const double LEAST = 1e-4;
/* Weights this close to multiples of 1/PARTS become these multiples. */
static const double CLOSE = 1e-3, PARTS = 12;

static void add_means(const int64_t *rows, uint32_t width, uint64_t runs, uint32_t n, double *mean) {
  for (uint64_t run = 0; run < runs; run++) {
    for (uint32_t i = 0; i < n; i++) {
      mean[i] += cv_grid_to(rows[run * width + i]) / (double)runs;
    }
  }
}

static void add_covariances(const int64_t *rows, uint32_t width, uint64_t runs, uint32_t n, const double *mean,
                            double *centred, gsl_matrix *matrix) {
  for (uint64_t run = 0; run < runs; run++) {
    for (uint32_t i = 0; i < n; i++) {
      centred[i] = cv_grid_to(rows[run * width + i]) - mean[i];
    }
    for (uint32_t i = 0; i < n; i++) {
      double *row = gsl_matrix_ptr(matrix, i, 0);
      for (uint32_t j = 0; j <= i; j++) {
        row[j] += centred[i] * centred[j];
      }
    }
  }
}

/* Completes the covariance matrix from its lower half, and adds the ridge. */
static void finish(gsl_matrix *matrix, uint32_t n, uint64_t runs) {
  double largest = 1;
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t j = 0; j <= i; j++) {
      double value = gsl_matrix_get(matrix, i, j) / (2 * (double)runs);
      gsl_matrix_set(matrix, i, j, value);
      gsl_matrix_set(matrix, j, i, value);
    }
    largest = fmax(largest, gsl_matrix_get(matrix, i, i));
  }
  for (uint32_t i = 0; i < n; i++) {
    gsl_matrix_set(matrix, i, i, gsl_matrix_get(matrix, i, i) + RIDGE * largest);
  }
}

static double largest_of(const double *weight, uint32_t n) {
  double largest = 0;
  for (uint32_t i = 0; i < n; i++) {
    largest = fmax(largest, fabs(weight[i]));
  }
  return largest;
}

/* Where noise cancels out of a sum, it cancels with exact weights only: estimated ones must be rounded to them. */
static void tidy(double *weight, uint32_t n) {
  double largest = largest_of(weight, n);
  bool fractions = true;
  for (uint32_t i = 0; i < n; i++) {
    weight[i] = largest == 0 || fabs(weight[i]) < LEAST * largest ? 0 : weight[i] / largest;
    fractions = fractions && fabs(weight[i] * PARTS - rint(weight[i] * PARTS)) < CLOSE * PARTS;
  }
  for (uint32_t i = 0; fractions && i < n; i++) {
    weight[i] = rint(weight[i] * PARTS) / PARTS;
  }
}

static void solve(gsl_matrix *matrix, const double *apart, double *weight, uint32_t n) {
  gsl_vector_const_view right = gsl_vector_const_view_array(apart, n);
  gsl_vector_view left = gsl_vector_view_array(weight, n);
  (void)gsl_linalg_cholesky_decomp1(matrix);
  (void)gsl_linalg_cholesky_solve(matrix, &right.vector, &left.vector);
}

enum cv_err cv_audit_discriminant(const int64_t *const rows[2], uint32_t width, uint64_t runs, uint32_t n,
                                  double *ret_weight) {
  double *scratch = calloc(4 * (size_t)n, sizeof(*scratch));
  gsl_matrix *matrix = gsl_matrix_calloc(n, n);
  if (scratch == NULL || matrix == NULL) {
    free(scratch);
    gsl_matrix_free(matrix);
    return CV_ERR_NOMEM;
  }
  double *mean[2] = {scratch, scratch + n}, *centred = scratch + 2 * (size_t)n, *apart = scratch + 3 * (size_t)n;
  for (int side = 0; side < 2; side++) {
    add_means(rows[side], width, runs, n, mean[side]);
    add_covariances(rows[side], width, runs, n, mean[side], centred, matrix);
  }
  finish(matrix, n, runs);
  for (uint32_t i = 0; i < n; i++) {
    apart[i] = mean[1][i] - mean[0][i];
  }
  solve(matrix, apart, ret_weight, n);
  tidy(ret_weight, n);
  free(scratch);
  gsl_matrix_free(matrix);
  return CV_OK;
}
