/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/tally.h"

#include <stdbool.h>
#include <stdio.h>

static struct tallies own;
struct tallies *tallies = &own;

static const struct {
  const char *text;
  bool must;
} about[TALLY_COUNT] = {
#define TALLY_MUST(name, text) [TALLY_##name] = {text, true},
#define TALLY_MAY(name, text)  [TALLY_##name] = {text, false},
    TALLIES(TALLY_MUST, TALLY_MAY)};

unsigned tally_print(const struct tallies *all) {
  unsigned missing = 0;
  for (int i = 0; i < TALLY_COUNT; i++) {
    bool missed = about[i].must && all->of[i] == 0;
    (void)printf("%12llu  %s%s\n", (unsigned long long)all->of[i], about[i].text,
                 missed ? "  <- never reached; expected at least once" : "");
    missing += missed;
  }
  return missing;
}
