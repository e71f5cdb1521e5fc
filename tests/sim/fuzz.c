/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/fuzz.h"

#include "tests/sim/tally.h"

/* A frame length that is not allowed: 0, or above the limit. */
static void break_framing(struct world *world, struct end *end) {
  uint8_t header[CV_FRAME_HEADER] = {0};
  if (world_chance(world, 50)) {
    cv_frame_header(header, CV_FRAME_BYTES + 1 + (size_t)world_below(world, UINT32_MAX - CV_FRAME_BYTES));
  }
  net_send_bytes(end, header, sizeof(header));
}

void fuzz_send(struct world *world, struct end *end) {
  struct cv_buf *bytes = &world->bytes;
  tally(TALLY_FUZZED);
  if (world_chance(world, 10)) {
    break_framing(world, end);
    return;
  }
  for (uint64_t i = world_below(world, 6); i > 0 && bytes->len > 0; i--) {
    bytes->data[world_below(world, bytes->len)] ^= (uint8_t)(1U << world_below(world, 8));
  }
  if (world_chance(world, 20)) {
    bytes->len -= (size_t)world_below(world, bytes->len);
  } else if (world_chance(world, 20)) {
    for (uint64_t i = 1 + world_below(world, 16); i > 0; i--) {
      cv_buf_put_u8(bytes, (uint8_t)world_below(world, 256));
    }
  }
  net_send(end, bytes->data, bytes->len);
}
