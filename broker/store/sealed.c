/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/store/sealed.h"

#include <string.h>

/* Of fixed length, so that different places never have equal bytes. */
struct bound {
  uint8_t bytes[CV_DATABASE_ID_BYTES + 4 + 4 + 8 + 8];
};

static struct bound bind_to(const struct cv_sealed *sealed, const struct cv_sealed_place *place) {
  struct bound bound;
  struct cv_buf out = {.data = bound.bytes, .cap = sizeof(bound.bytes)};
  cv_buf_put(&out, sealed->database, sizeof(sealed->database));
  cv_buf_put_u32(&out, place->campaign);
  cv_buf_put_u32(&out, place->kind);
  cv_buf_put_u64(&out, place->number);
  cv_buf_put_u64(&out, place->commit);
  return bound;
}

void cv_sealed_fini(struct cv_sealed *sealed) {
  if (sealed->out.data != NULL) {
    explicit_bzero(sealed->out.data, sealed->out.cap);
  }
  cv_buf_fini(&sealed->out);
}

enum cv_err cv_sealed_close(struct cv_sealed *sealed, const struct cv_sealed_place *place, const void *bytes, size_t n,
                            struct cv_why *why) {
  struct cv_seal *context;
  struct bound bound = bind_to(sealed, place);
  CV_TRY(cv_vault_seal(sealed->vault, place->campaign, &context, why));
  cv_buf_clear(&sealed->out);
  enum cv_err err = cv_seal_close(context, bound.bytes, sizeof(bound.bytes), bytes, n, &sealed->out);
  return err == CV_OK ? err
                      : cv_fail(why, err, "the broker's database: cannot seal for campaign %u: %s", place->campaign,
                                cv_err_text(err));
}

enum cv_err cv_sealed_open(struct cv_sealed *sealed, const struct cv_sealed_place *place, const void *bytes, size_t n) {
  struct cv_seal *context;
  struct bound bound = bind_to(sealed, place);
  cv_buf_clear(&sealed->out);
  CV_TRY(cv_vault_seal(sealed->vault, place->campaign, &context, NULL));
  return cv_seal_open(context, bound.bytes, sizeof(bound.bytes), bytes, n, &sealed->out);
}
