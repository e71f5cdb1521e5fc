/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A test vector: a JSON file as draft-irtf-cfrg-vdaf describes it ("Test Vectors"), whose operations are done again
 * with the programs' code.
 */
#ifndef CV_VECTORS_VECTOR_H
#define CV_VECTORS_VECTOR_H

#include <jansson.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"

enum outcome {
  PASSED,
  FAILED,  /* the code does something else than the file says, or the file is malformed */
  SKIPPED, /* the file is of an algorithm that the project does not have */
};

/* The file's content; NULL with a reason. Whole numbers that a signed 64-bit integer cannot hold become strings. */
json_t *vector_read(const char *path, struct cv_why *why);

/* Values of it. False, with a message that begins with `name`, if there is no such value of that kind. */
bool vector_hex(const json_t *value, const char *name, struct cv_buf *ret, struct cv_why *why);
bool vector_number(const json_t *value, const char *name, uint64_t *ret, struct cv_why *why);

/* True if bytes and the vector's hexadecimal digits are the same. */
bool vector_same(const json_t *value, const char *name, const uint8_t *bytes, size_t n, struct cv_why *why);

/* Does a file's operations again. `name` is the file's, which begins with the algorithm's: Prio3Sum_0.json. */
enum outcome vector_replay(const char *name, json_t *root, struct cv_why *why);

/* The two kinds of files. */
enum outcome vector_replay_prio(const char *name, json_t *root, struct cv_why *why);
enum outcome vector_replay_xof(json_t *root, struct cv_why *why);

#endif
