/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The co-broker's core under a sequence of events that the input encodes: a broker and gateways that come and go, every
 * message of share.proto in any order, correct or with something changed, or raw; time that jumps, flushes with events
 * in between, crashes before and after a commit, stored rows with a changed byte. Tokens are real shares. Whatever the
 * broker says, a number has one verify key, a place and a slot count once, a half is over the tokens that an honest
 * broker has booked, with noise, and is never made again; and an honest broker's campaign is not frozen.
 *
 * First byte: the co-broker's settings. Then the events (cobroker_play.h).
 */
#include "tests/fuzz/cobroker_play.h"
#include "tests/fuzz/fuzz.h"

enum { EVENTS = 400 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  static struct world world; /* large */
  struct cv_reader in = cv_reader_over(bytes, n);
  world_begin(&world, cv_read_u8(&in));
  bool goes_on = true;
  for (int i = 0; i < EVENTS && goes_on && !in.failed && in.at < in.end; i++) {
    goes_on = play_event(&world, &in);
  }
  for (int i = 0; goes_on && i < 3; i++) {
    play_turn(&world);
  }
  if (goes_on && play_crash(&world, true)) {
    play_turn(&world);
  }
  world_end(&world);
  return 0;
}
