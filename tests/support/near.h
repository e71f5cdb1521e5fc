/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka 1.1.5 has no comparison of doubles. Include after cmocka.h. */
#ifndef CV_TESTS_NEAR_H
#define CV_TESTS_NEAR_H

#include <math.h>

static inline void assert_near_at(double a, double b, double tolerance, const char *file, int line) {
  if (!(fabs(a - b) <= tolerance)) {
    print_error("%.17g is not within %g of %.17g\n", a, tolerance, b);
    _fail(file, line);
  }
}
#define assert_near(a, b, tolerance) assert_near_at((a), (b), (tolerance), __FILE__, __LINE__)

#endif
