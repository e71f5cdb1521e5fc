/* SPDX-License-Identifier: Apache-2.0 */
/* Common to all mechanisms: exact sums, the order of drawing and releasing, the stored form. */
#include "broker/mechanism/mechanism.h"

#include <stdlib.h>
#include <string.h>

#include "broker/mechanism/classes.h"
#include "common/base/grid.h"
#include "common/noise/dlaplace.h"
#include "common/prio/field.h"

enum { STATE_VERSION = 2 };

enum cv_cover cv_mechanism_cover(const struct cv_mechanism_law *law, uint64_t n) {
  CV_REQUIRE(n >= 1);
  switch (law->class->traits->sums) {
    case CV_SUMS_ITEM:
      return CV_COVER_ITEM;
    case CV_SUMS_POWERS:
      return cv_is_power_of_two(n) ? CV_COVER_ALL : CV_COVER_BEFORE;
    default:
      return CV_COVER_ALL;
  }
}

void cv_mechanism_noise(const struct cv_mechanism_law *law, uint64_t n, struct cv_noise *ret) {
  CV_REQUIRE(n >= 1);
  law->class->noise(law, n, ret);
}

uint64_t cv_mechanism_spent_micro(const struct cv_mechanism_law *law, uint64_t n) {
  return n == 0 ? 0 : law->class->spent_micro(law, n);
}

uint64_t cv_mechanism_part_micro(const struct cv_mechanism_law *law, uint64_t parts, uint64_t whole) {
  __uint128_t part = ((__uint128_t)law->epsilon_micro * parts + whole - 1) / whole;
  return part > UINT64_MAX ? UINT64_MAX : (uint64_t)part;
}

int64_t cv_mechanism_laplace(const struct cv_mechanism *self, uint64_t b, struct cv_rng *rng) {
  struct cv_dlaplace law;
  /* b < 2^12 and CV_GRID CV_MICRO < 2^40: within the sampler's range for every epsilon. */
  CV_REQUIRE(cv_dlaplace_init(&law, b * (uint64_t)(CV_GRID * CV_MICRO), self->law.epsilon_micro) == CV_OK);
  return cv_dlaplace_draw(&law, rng);
}

enum cv_err cv_mechanism_new(const struct cv_mechanism_law *law, struct cv_mechanism **ret) {
  struct cv_mechanism *mechanism = calloc(1, sizeof(*mechanism) + law->nodes * sizeof(mechanism->node[0]));
  if (mechanism == NULL) {
    return CV_ERR_NOMEM;
  }
  mechanism->law = *law;
  *ret = mechanism;
  return CV_OK;
}

void cv_mechanism_free(struct cv_mechanism *mechanism) {
  if (mechanism == NULL) {
    return;
  }
  explicit_bzero(mechanism, sizeof(*mechanism) + mechanism->law.nodes * sizeof(mechanism->node[0]));
  free(mechanism);
}

bool cv_mechanism_is_spent(const struct cv_mechanism *mechanism) {
  return mechanism->releases >= mechanism->law.horizon;
}

/* The number of the release that the nodes belong to; 0 before the first. */
static uint64_t nodes_at(const struct cv_mechanism *mechanism) {
  return mechanism->releases + mechanism->drawn;
}

static bool is_live(const struct cv_mechanism *mechanism, uint32_t node) {
  uint64_t n = nodes_at(mechanism);
  return n > 0 && mechanism->law.class->is_live(&mechanism->law, n, node);
}

void cv_mechanism_draw(struct cv_mechanism *mechanism, struct cv_rng *rng) {
  if (mechanism->drawn) {
    return;
  }
  CV_REQUIRE(!cv_mechanism_is_spent(mechanism));
  const struct cv_mechanism_class *class = mechanism->law.class;
  uint64_t n = mechanism->releases + 1;
  class->draw(mechanism, n, rng);
  mechanism->drawn = true;
  mechanism->noise = class->total(mechanism, n);
}

/* Sums of a law of shares are elements of the field, kept in the same 64 bits. */
static int64_t add(const struct cv_mechanism *mechanism, int64_t a, int64_t b) {
  return mechanism->law.shares ? (int64_t)cv_field_add((uint64_t)a, (uint64_t)b) : cv_wrapping_add(a, b);
}

/* Takes the item into the sums, of which release n + 1 covers `exact`. */
static void take(struct cv_mechanism *mechanism, int64_t item) {
  CV_REQUIRE(mechanism->drawn);
  int64_t all = add(mechanism, mechanism->waiting, item);
  mechanism->releases++;
  mechanism->waiting = 0;
  switch (cv_mechanism_cover(&mechanism->law, mechanism->releases)) {
    case CV_COVER_ALL:
      mechanism->exact = add(mechanism, mechanism->exact, all);
      break;
    case CV_COVER_ITEM:
      mechanism->exact = item;
      break;
    case CV_COVER_BEFORE:
      mechanism->waiting = all;
      break;
  }
}

/* The release is made: its noise is used up. */
static void use_up(struct cv_mechanism *mechanism) {
  mechanism->drawn = false;
  mechanism->noise = 0;
}

int64_t cv_mechanism_release(struct cv_mechanism *mechanism, int64_t item) {
  CV_REQUIRE(!mechanism->law.shares);
  take(mechanism, item);
  int64_t released = cv_wrapping_add(mechanism->exact, mechanism->noise);
  use_up(mechanism);
  return released;
}

uint64_t cv_mechanism_release_share(struct cv_mechanism *mechanism, uint64_t item) {
  CV_REQUIRE(mechanism->law.shares && item < CV_FIELD_P);
  take(mechanism, (int64_t)item);
  uint64_t half = cv_field_add((uint64_t)mechanism->exact, cv_field_of_int(mechanism->noise));
  use_up(mechanism);
  return half;
}

/* ---- the stored form: class, sums, and the live nodes ---- */

static void put_law(const struct cv_mechanism_law *law, struct cv_buf *out) {
  cv_buf_put_u8(out, STATE_VERSION);
  cv_buf_put_bytes(out, law->class->traits->name, strlen(law->class->traits->name));
  cv_buf_put_u64(out, law->epsilon_micro);
  cv_buf_put_u64(out, law->horizon);
  cv_buf_put_u32(out, law->arity);
}

static enum cv_err check_law(const struct cv_mechanism_law *law, struct cv_reader *in) {
  if (cv_read_u8(in) != STATE_VERSION) {
    return in->failed ? CV_ERR_DAMAGED : CV_ERR_VERSION;
  }
  size_t n = 0;
  const uint8_t *name = cv_read_bytes(in, &n);
  bool same = name != NULL && n == strlen(law->class->traits->name) && memcmp(name, law->class->traits->name, n) == 0;
  same = cv_read_u64(in) == law->epsilon_micro && same;
  same = cv_read_u64(in) == law->horizon && same;
  same = cv_read_u32(in) == law->arity && same;
  return same && !in->failed ? CV_OK : CV_ERR_DAMAGED;
}

void cv_mechanism_save(const struct cv_mechanism *mechanism, struct cv_buf *out) {
  put_law(&mechanism->law, out);
  cv_buf_put_u64(out, mechanism->releases);
  cv_buf_put_u8(out, mechanism->drawn);
  cv_buf_put_u64(out, (uint64_t)mechanism->exact);
  cv_buf_put_u64(out, (uint64_t)mechanism->waiting);
  for (uint32_t i = 0; i < mechanism->law.nodes; i++) {
    if (is_live(mechanism, i)) {
      cv_buf_put_u64(out, (uint64_t)mechanism->node[i]);
    }
  }
}

/* Whether the sums are impossible: nonzero before the first item, waiting where nothing can wait, or no elements. */
static bool has_false_sums(const struct cv_mechanism *mechanism) {
  if (mechanism->law.shares &&
      ((uint64_t)mechanism->exact >= CV_FIELD_P || (uint64_t)mechanism->waiting >= CV_FIELD_P)) {
    return true;
  }
  bool waits = mechanism->releases > 0 && cv_mechanism_cover(&mechanism->law, mechanism->releases) == CV_COVER_BEFORE;
  return (mechanism->releases == 0 && mechanism->exact != 0) || (!waits && mechanism->waiting != 0);
}

/* False if the bytes are not what cv_mechanism_save() writes for this law. */
static bool load_into(struct cv_mechanism *mechanism, struct cv_reader *in) {
  mechanism->releases = cv_read_u64(in);
  uint8_t drawn = cv_read_u8(in);
  mechanism->drawn = drawn == 1;
  mechanism->exact = (int64_t)cv_read_u64(in);
  mechanism->waiting = (int64_t)cv_read_u64(in);
  if (in->failed || drawn > 1 || mechanism->releases > mechanism->law.horizon ||
      nodes_at(mechanism) > mechanism->law.horizon || has_false_sums(mechanism)) {
    return false;
  }
  for (uint32_t i = 0; i < mechanism->law.nodes; i++) {
    mechanism->node[i] = is_live(mechanism, i) ? (int64_t)cv_read_u64(in) : 0;
  }
  if (mechanism->drawn) {
    mechanism->noise = mechanism->law.class->total(mechanism, nodes_at(mechanism));
  }
  return !in->failed;
}

enum cv_err cv_mechanism_load(const struct cv_mechanism_law *law, struct cv_reader *in, struct cv_mechanism **ret) {
  struct cv_mechanism *mechanism;
  CV_TRY(check_law(law, in));
  CV_TRY(cv_mechanism_new(law, &mechanism));
  if (!load_into(mechanism, in)) {
    cv_mechanism_free(mechanism);
    return CV_ERR_DAMAGED;
  }
  *ret = mechanism;
  return CV_OK;
}
