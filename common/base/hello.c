/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/hello.h"

enum cv_err cv_hello_check(const struct cv_hello *hello, const char *them, const char *us, struct cv_why *why) {
  if (hello->version == CV_WIRE_VERSION) {
    return CV_OK;
  }
  /* The older side is the one to upgrade, and either side can say so. */
  return cv_fail(why, CV_ERR_VERSION, "a hello of wire version %u from the %s; expected version %d: upgrade the %s",
                 hello->version, them, CV_WIRE_VERSION, hello->version < CV_WIRE_VERSION ? them : us);
}
