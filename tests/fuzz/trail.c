/* SPDX-License-Identifier: Apache-2.0 */
/* The end of an audit log: either it is not one, or the next line continues it. */
#include <inttypes.h>

#include "common/crypto/crypto.h"
#include "common/daemon/trail_line.h"
#include "tests/fuzz/fuzz.h"

/* What a daemon appends: a line break if the last line has none, then a line. */
static char *continued(const char *text, size_t n, const struct cv_trail_end *end, size_t *ret_n) {
  size_t room = n + 256;
  char hex[CV_TRAIL_HEX], *more = malloc(room);
  CV_REQUIRE(more != NULL);
  memcpy(more, text, n);
  cv_trail_line_hex(&end->last, hex);
  *ret_n = n + (size_t)snprintf(more + n, room - n, "%s{\"time\":\"\",\"n\":%" PRIu64 ",\"previous\":\"%s\"}\n",
                                end->is_torn ? "\n" : "", end->lines + 1, hex);
  return more;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  char *text = fuzz_text(bytes, n);
  struct cv_trail_line line;
  struct cv_trail_end end;
  if (cv_trail_line_read(text, n, &line)) {
    CV_REQUIRE(line.number > 0 && strspn(line.previous, "0123456789abcdef") == CV_TRAIL_HEX - 1);
    CV_REQUIRE(cv_trail_line_begins(text, n));
  }
  if (cv_trail_end_read(text, n, cv_sha256, &end) && end.lines < UINT64_C(1000000000000000000)) {
    struct cv_trail_end after;
    size_t more_n;
    char *more = continued(text, n, &end, &more_n);
    CV_REQUIRE((n == 0) == (end.lines == 0));
    CV_REQUIRE(cv_trail_end_read(more, more_n, cv_sha256, &after));
    CV_REQUIRE(after.lines == end.lines + 1 && !after.is_torn);
    free(more);
  }
  free(text);
  return 0;
}
