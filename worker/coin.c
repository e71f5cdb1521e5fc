/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coin.h"

#include <string.h>

#include "common/base/err.h"
#include "worker/quality/print.h"

static const char TAG[] = "crowdveil coin of an opinion";

static uint8_t *put(uint8_t *at, uint64_t number) {
  for (int i = 0; i < 8; i++) {
    *at++ = (uint8_t)(number >> (8 * i));
  }
  return at;
}

void cv_coin_init(struct cv_coin *coin, const uint8_t key[CV_COIN_KEY_BYTES], const struct cv_local *law,
                  const struct cv_opinion *opinion) {
  static const struct cv_local rounding = {.kind = CV_LOCAL_KINDS};
  law = law == NULL ? &rounding : law;
  const struct cv_matrix none = {0}, *matrix = law->matrices == 0 ? &none : cv_local_matrix(law, opinion->arm);
  /* All that the draw depends on but the score: two laws, or two opinions, never share bits. */
  const uint64_t field[] = {(uint64_t)law->kind, law->epsilon_micro, law->delta_pico, law->printed,
                            matrix->p00_micro,   matrix->p11_micro,  opinion->source, opinion->arm,
                            opinion->opponent,   opinion->number};
  uint8_t bound[sizeof(field)], *at = bound;
  for (size_t i = 0; i < CV_COUNT(field); i++) {
    at = put(at, field[i]);
  }
  cv_xof_init(&coin->bits.xof, key, CV_COIN_KEY_BYTES, (const uint8_t *)TAG, sizeof(TAG) - 1, NULL, 0, bound,
              sizeof(bound));
  cv_xof_rng_init(&coin->bits);
}

uint64_t cv_coin_law(const struct cv_local *law) {
  if (law->kind == CV_LOCAL_NONE) {
    return 0;
  }
  uint64_t print = cv_print_number(CV_PRINT_EMPTY, (uint64_t)law->kind);
  print = cv_print_number(cv_print_number(print, law->epsilon_micro), law->delta_pico);
  print = cv_print_number(print, law->printed);
  for (uint32_t i = 0; i < law->matrices; i++) {
    print = cv_print_number(cv_print_number(print, law->matrix[i].p00_micro), law->matrix[i].p11_micro);
  }
  return print;
}

void cv_coin_wipe(struct cv_coin *coin) {
  explicit_bzero(coin, sizeof(*coin));
}
