/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/store/proof.h"

/* New parts must be appended. */
static const struct cv_proof_part parts[] = {
    [CV_PART_META] = {.table = "meta"},
    [CV_PART_CAMPAIGN] = {.table = "campaign", .group = "id", .code = "code"},
    [CV_PART_PLAN] = {.table = "plan", .group = "campaign", .code = "code"},
    [CV_PART_RELEASE] = {.table = "release", .group = "campaign", .code = "code"},
    [CV_PART_LEDGER] = {.table = "ledger", .group = "campaign", .code = "code"},
    [CV_PART_RECOVERY] = {.table = "recovery", .code = "code"},
    [CV_PART_JOURNAL] = {.table = "journal", .group = "campaign", .sealed = "sealed"},
    [CV_PART_CHUNK] = {.table = "chunk", .group = "campaign", .sealed = "sealed"},
    [CV_PART_ENDED] = {.table = "ended", .group = "campaign", .code = "code"},
    [CV_PART_KEY] = {.table = "wrapped_key", .group = "campaign", .sealed = "wrapped"},
};
_Static_assert(CV_COUNT(parts) == CV_SQLITE_PARTS, "a part each");

static enum cv_err code(void *data, const void *bytes, size_t n, uint8_t ret[2 * CV_PROOF_CODE_BYTES]) {
  return cv_mac_tag(data, bytes, n, ret, (size_t)2 * CV_PROOF_CODE_BYTES);
}

enum cv_err cv_sqlite_proof_begin(struct cv_db *db, const struct cv_key *key, bool is_new, struct cv_mac **ret_mac,
                                  struct cv_why *why) {
  enum cv_err err = cv_mac_new(key, ret_mac);
  if (err != CV_OK) {
    return cv_fail(why, err, "the broker's database: cannot use the key of its codes: %s", cv_err_text(err));
  }
  const struct cv_proof_config config = {
      .part = parts, .parts = CV_COUNT(parts), .code = code, .data = *ret_mac, .is_new = is_new};
  return cv_proof_begin(db, &config, why);
}
