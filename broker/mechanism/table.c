/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "broker/mechanism/classes.h"
#include "common/base/grid.h"
#include "common/noise/dlaplace.h"

enum { STATE_VERSION = 1 };

static const struct cv_mechanism_class *const table[] = {
    &cv_mechanism_hybrid,
    &cv_mechanism_none,
};

const struct cv_mechanism_class *cv_mechanism_at(size_t index) {
  return index < CV_COUNT(table) ? table[index] : NULL;
}

const struct cv_mechanism_class *cv_mechanism_find(const char *name) {
  for (size_t i = 0; i < CV_COUNT(table); i++) {
    if (strcmp(table[i]->name, name) == 0) {
      return table[i];
    }
  }
  return NULL;
}

enum cv_err cv_mechanism_new(const struct cv_mechanism_class *class, uint64_t epsilon_micro,
                             struct cv_mechanism **ret) {
  if (class->is_private && epsilon_micro == 0) {
    return CV_ERR_INVALID;
  }
  struct cv_mechanism *mechanism = calloc(1, class->size);
  if (mechanism == NULL) {
    return CV_ERR_NOMEM;
  }
  mechanism->class = class;
  mechanism->epsilon_micro = epsilon_micro;
  *ret = mechanism;
  return CV_OK;
}

void cv_mechanism_free(struct cv_mechanism *mechanism) {
  if (mechanism == NULL) {
    return;
  }
  explicit_bzero(mechanism, mechanism->class->size);
  free(mechanism);
}

int64_t cv_mechanism_laplace(const struct cv_mechanism *self, uint64_t b, struct cv_rng *rng) {
  struct cv_dlaplace law;
  /* b < 2^7 and CV_GRID CV_MICRO < 2^40: within the sampler's range for every epsilon. */
  CV_REQUIRE(cv_dlaplace_init(&law, b * (uint64_t)(CV_GRID * CV_MICRO), self->epsilon_micro) == CV_OK);
  return cv_dlaplace_draw(&law, rng);
}

void cv_mechanism_draw(struct cv_mechanism *mechanism, struct cv_rng *rng) {
  CV_REQUIRE(mechanism->releases + 1 < CV_RELEASES_END);
  if (!mechanism->drawn) {
    mechanism->class->draw(mechanism, rng);
    mechanism->drawn = true;
  }
}

int64_t cv_mechanism_release(struct cv_mechanism *mechanism, int64_t item) {
  CV_REQUIRE(mechanism->drawn);
  int64_t noisy_sum = mechanism->class->release(mechanism, item);
  mechanism->releases++;
  mechanism->drawn = false;
  return noisy_sum;
}

void cv_mechanism_noise(const struct cv_mechanism *mechanism, uint64_t n, struct cv_noise *ret) {
  CV_REQUIRE(n >= 1);
  mechanism->class->noise(n, ret);
}

uint64_t cv_mechanism_spent_micro(const struct cv_mechanism *mechanism, uint64_t n) {
  return mechanism->class->spent_micro(mechanism->epsilon_micro, n);
}

void cv_mechanism_save(const struct cv_mechanism *mechanism, struct cv_buf *out) {
  const char *name = mechanism->class->name;
  cv_buf_put_u8(out, STATE_VERSION);
  cv_buf_put_bytes(out, name, strlen(name));
  cv_buf_put_u64(out, mechanism->epsilon_micro);
  cv_buf_put_u64(out, mechanism->releases);
  cv_buf_put_u8(out, mechanism->drawn);
  mechanism->class->save(mechanism, out);
}

static bool reads_name(struct cv_reader *in, const char *expected) {
  size_t n = 0;
  const uint8_t *name = cv_read_bytes(in, &n);
  return name != NULL && n == strlen(expected) && memcmp(name, expected, n) == 0;
}

/* False if the bytes are not what cv_mechanism_save() writes for this class. */
static bool load_into(struct cv_mechanism *mechanism, struct cv_reader *in) {
  mechanism->epsilon_micro = cv_read_u64(in);
  mechanism->releases = cv_read_u64(in);
  uint8_t drawn = cv_read_u8(in);
  mechanism->drawn = drawn == 1;
  if (in->failed || drawn > 1 || mechanism->releases >= CV_RELEASES_END ||
      (mechanism->class->is_private && mechanism->epsilon_micro == 0)) {
    return false;
  }
  mechanism->class->load(mechanism, in);
  return !in->failed;
}

enum cv_err cv_mechanism_load(const struct cv_mechanism_class *class, struct cv_reader *in, struct cv_mechanism **ret) {
  if (cv_read_u8(in) != STATE_VERSION) {
    return in->failed ? CV_ERR_DAMAGED : CV_ERR_VERSION;
  }
  if (!reads_name(in, class->name)) {
    return CV_ERR_DAMAGED;
  }
  struct cv_mechanism *mechanism = calloc(1, class->size);
  if (mechanism == NULL) {
    return CV_ERR_NOMEM;
  }
  mechanism->class = class;
  if (!load_into(mechanism, in)) {
    cv_mechanism_free(mechanism);
    return CV_ERR_DAMAGED;
  }
  *ret = mechanism;
  return CV_OK;
}
