/* SPDX-License-Identifier: Apache-2.0 */
/* A mechanism's stored state: a state that loads is saved byte for byte, and works. The first byte selects the
 * class. */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/support/mechanism.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  if (n < 1) {
    return 0;
  }
  size_t count = 0;
  while (cv_mechanism_at(count) != NULL) {
    count++;
  }
  const struct cv_mechanism_law law = mechanism_law(cv_mechanism_at(bytes[0] % count)->traits->name, 250000, 100);
  struct cv_mechanism *mechanism;
  struct cv_rng_seeded seeded;
  struct cv_buf out = {0};
  struct cv_reader in = cv_reader_over(bytes + 1, n - 1);
  if (cv_mechanism_load(&law, &in, &mechanism) != CV_OK) {
    return 0;
  }
  cv_mechanism_save(mechanism, &out);
  CV_REQUIRE(out.len == (size_t)(in.at - bytes) - 1 && memcmp(out.data, bytes + 1, out.len) == 0);
  cv_rng_seeded_init(&seeded, 1, CV_RNG_NOISE, 0, 0);
  struct cv_noise noise;
  for (int i = 0; i < 4 && !cv_mechanism_is_spent(mechanism); i++) {
    cv_mechanism_draw(mechanism, &seeded.rng);
    (void)cv_mechanism_release(mechanism, INT64_C(1) << 40);
    cv_mechanism_noise(&law, mechanism->releases, &noise);
    CV_REQUIRE(noise.groups <= CV_NOISE_GROUPS_MAX);
  }
  cv_mechanism_free(mechanism);
  cv_buf_fini(&out);
  return 0;
}
