/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The origin of results: what a file states about itself, so that results are never mixed up between experiments, and
 * so that the file can be read without the program that wrote it.
 */
#ifndef CV_LAB_ORIGIN_H
#define CV_LAB_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "lab/result/result.h"

enum {
  CV_LAB_HEX_BYTES = 65,
  CV_LAB_TEXT_MAX = 1024 * 1024, /* bytes of an experiment's text */
  CV_LAB_NUMBERS_MAX = 1 << 20,  /* of one piece */
  CV_LAB_FILES_MAX = 1024,       /* data files of an experiment */
};

struct cv_lab_label {
  char text[CV_LAB_NAME];
};

/* A data file, identified by its content, wherever it is stored. */
struct cv_lab_data_file {
  char *path; /* owned */
  uint64_t bytes;
  char sha256[CV_LAB_HEX_BYTES]; /* lower-case hexadecimal */
};

/*
 * A piece has one value for each series, moment and metric, in this order. Either each point of x is a separate setting
 * with one moment, or there is one setting, whose moments are the points.
 */
struct cv_lab_origin {
  char *name, *text; /* the experiment's; owned */
  char text_sha256[CV_LAB_HEX_BYTES];
  uint64_t seed;
  bool token_level;
  char program[CV_LAB_NAME]; /* version of the program that created the file; ignored by cv_lab_origin_match() */
  size_t settings, series, points, metrics;
  struct cv_lab_label *series_name, *metric_name; /* owned */
  double *x;                                      /* of each point, NAN: none; owned */
  size_t files;
  struct cv_lab_data_file *file; /* owned */
};

void cv_lab_origin_fini(struct cv_lab_origin *origin);
/* The number of points of a setting. */
size_t cv_lab_origin_moments(const struct cv_lab_origin *origin);
/* The number of values of a piece. */
size_t cv_lab_origin_numbers(const struct cv_lab_origin *origin);
/* The series, point and metric of a piece's value. */
struct cv_lab_place {
  size_t series, point, metric;
};
struct cv_lab_place cv_lab_origin_place(const struct cv_lab_origin *origin, size_t setting, size_t number);
/* True if the sizes are consistent and within their limits. */
bool cv_lab_origin_is_valid(const struct cv_lab_origin *origin);

/*
 * Checks that results of both origins belong together; if not, CV_ERR_INVALID with the first difference in one line.
 * `found` is the origin of the file at `path`.
 */
CV_MUST_USE enum cv_err cv_lab_origin_match(const struct cv_lab_origin *found, const struct cv_lab_origin *expected,
                                            const char *path, struct cv_why *why);

/* SHA-256 of bytes, in hexadecimal; and of a regular file that is not empty. CV_ERR_NOT_FOUND, CV_ERR_INVALID or
 * CV_ERR_IO with one line. */
void cv_lab_sha256_hex(const void *bytes, size_t n, char ret[CV_LAB_HEX_BYTES]);
CV_MUST_USE enum cv_err cv_lab_data_file_read(const char *path, struct cv_lab_data_file *ret, struct cv_why *why);

#endif
