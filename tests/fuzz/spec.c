/* SPDX-License-Identifier: Apache-2.0 */
/* A stored spec: a spec that decodes is encoded to bytes that decode to the same. */
#include "common/base/spec.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  struct cv_spec spec, again;
  struct cv_buf first = {0}, second = {0};
  struct cv_reader in = cv_reader_over(bytes, n);
  if (cv_spec_decode(&in, &spec) != CV_OK) {
    return 0;
  }
  cv_spec_encode(&spec, &first);
  in = cv_reader_over(first.data, first.len);
  CV_REQUIRE(cv_spec_decode(&in, &again) == CV_OK && cv_reader_done(&in));
  cv_spec_encode(&again, &second);
  CV_REQUIRE(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
  struct cv_why why = {.text = ""};
  CV_REQUIRE(cv_spec_check(&spec, &why) == CV_OK || why.text[0] != '\0');
  cv_spec_fini(&spec);
  cv_spec_fini(&again);
  cv_buf_fini(&first);
  cv_buf_fini(&second);
  return 0;
}
