/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/opponent.h"

#include "common/base/buf.h"

enum { TAG = 8 };

/* Authenticated text of another length than a ticket's body, so that neither is ever taken for the other. */
static const char USE[] = "crowdveil opponent of a place";

static enum cv_err draw_number(const struct cv_tagger *tagger, const struct cv_opponent_place *place, uint32_t attempt,
                               uint64_t *ret) {
  uint8_t tag[TAG];
  struct cv_buf text = {0};
  cv_buf_put_bytes(&text, USE, sizeof(USE));
  cv_buf_put_u32(&text, place->campaign);
  cv_buf_put_u64(&text, place->plan);
  cv_buf_put_u32(&text, place->arm);
  cv_buf_put_u32(&text, place->position);
  cv_buf_put_u32(&text, attempt);
  enum cv_err err = cv_buf_ok(&text) ? tagger->tag(tagger->data, text.data, text.len, tag, TAG) : CV_ERR_NOMEM;
  cv_buf_fini(&text);
  CV_TRY(err);
  struct cv_reader reader = cv_reader_over(tag, TAG);
  *ret = cv_read_u64(&reader);
  return CV_OK;
}

enum cv_err cv_opponent_draw(const struct cv_tagger *tagger, const struct cv_opponent_place *place, uint32_t arms,
                             uint32_t *ret_arm) {
  CV_REQUIRE(arms >= 2 && place->arm < arms);
  const uint64_t others = arms - 1;
  /* 2^64 mod others: the numbers below it are drawn again, which leaves a multiple of `others`. */
  const uint64_t rest = (UINT64_MAX % others + 1) % others;
  uint64_t number;
  uint32_t attempt = 0;
  do {
    CV_TRY(draw_number(tagger, place, attempt++, &number));
  } while (number < rest);
  uint32_t drawn = (uint32_t)(number % others);
  *ret_arm = drawn + (drawn >= place->arm);
  return CV_OK;
}
