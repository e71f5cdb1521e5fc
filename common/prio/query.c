/* SPDX-License-Identifier: Apache-2.0 */
#include "common/prio/query.h"

#include <string.h>

#include "common/prio/poly.h"
#include "common/prio/public.h"
#include "common/prio/share.h"

/* The circuit's output: of several gadget outputs a random combination. Output k is at power 2 (k + 1). */
static uint64_t circuit_output(const struct cv_prio *p, const uint64_t *measurement, const uint64_t *gadget,
                               const uint64_t *rand) {
  if (p->circuit == CV_PRIO_COUNT) {
    return cv_field_sub(gadget[2], measurement[0]);
  }
  if (p->measurement_elements == 1) {
    return gadget[2];
  }
  uint64_t sum = 0;
  for (unsigned k = 0; k < p->measurement_elements; k++) {
    sum = cv_field_add(sum, cv_field_mul(rand[k], gadget[2 * (k + 1)]));
  }
  return sum;
}

static bool is_point(const struct cv_prio *p, uint64_t x) {
  for (unsigned i = 1; i < p->points; i *= 2) {
    x = cv_field_mul(x, x);
  }
  return x == 1;
}

bool cv_prio_query(const struct cv_prio *p, const uint64_t *share, const uint64_t *rand, uint64_t *ret) {
  const uint64_t *wire_seed = share + p->measurement_elements, *gadget = wire_seed + p->arity;
  uint64_t x = rand[p->query_elements - 1], value[CV_PRIO_VALUES_END];
  size_t n = 2 * (size_t)p->points;
  if (cv_prio_public(is_point(p, x))) {
    return false;
  }
  *ret++ = circuit_output(p, share, gadget, rand);
  for (unsigned j = 0; j < p->arity; j++) {
    cv_prio_wire(p, j, share, wire_seed, value);
    uint64_t times_points = cv_poly_eval(value, p->points, p->inverse_root, 2, x);
    *ret++ = cv_field_mul(times_points, cv_field_add(p->share_of_one, p->share_of_one));
  }
  memcpy(value, gadget, (n - 1) * sizeof(*gadget));
  value[n - 1] = cv_poly_last(gadget, n, p->inverse_root);
  *ret = cv_field_mul(cv_poly_eval(value, n, p->inverse_root, 1, x), p->share_of_one);
  return true;
}
