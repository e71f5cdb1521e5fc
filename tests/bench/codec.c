/* SPDX-License-Identifier: Apache-2.0 */
/* Nanoseconds to encode and decode one submessage of crowd frames: the hot path of the broker and the gateways. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "proto/codec/crowd.h"

enum { ROWS = 1000, ROUNDS = 400 };

struct bench {
  struct cv_arena arena, scratch;
  struct cv_buf out;
};

static double now_ns(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void must(enum cv_err err) {
  if (err != CV_OK) {
    (void)fprintf(stderr, "codec bench: %s\n", cv_err_text(err));
    exit(1);
  }
}

static void measure(struct bench *bench, const char *name, const struct cv_crowd_frame *frame, size_t rows) {
  double encode_ns = 0, decode_ns = 0;
  for (int i = 0; i < ROUNDS; i++) {
    cv_buf_clear(&bench->out);
    double start = now_ns();
    must(cv_crowd_encode(frame, &bench->scratch, &bench->out));
    double middle = now_ns();
    struct cv_crowd_frame decoded;
    must(cv_crowd_decode(bench->out.data, bench->out.len, &bench->arena, &decoded));
    encode_ns += middle - start;
    decode_ns += now_ns() - middle;
  }
  (void)printf("%-8s %6zu bytes: encode %6.1f ns, decode %6.1f ns a submessage\n", name, bench->out.len,
               encode_ns / ROUNDS / (double)rows, decode_ns / ROUNDS / (double)rows);
}

int main(void) {
  static struct cv_token tokens[ROWS];
  static struct cv_assign assigns[ROWS];
  static struct cv_crowd_ack acks[ROWS];
  static int64_t values[ROWS];
  struct bench bench = {0};
  must(cv_arena_init(&bench.arena, CV_ARENA_BYTES));
  must(cv_arena_init(&bench.scratch, CV_ARENA_BYTES));
  for (uint32_t i = 0; i < ROWS; i++) {
    values[i] = (int64_t)i * 1048;
    tokens[i] = (struct cv_token){.ticket = {(uint8_t)i}, .values = 1, .value = &values[i]};
    assigns[i] = (struct cv_assign){
        .campaign = 7, .worker = 1000000 + i, .ticket = {(uint8_t)i}, .arms = 1, .arm.one = i % 20, .place = i};
    acks[i] = (struct cv_crowd_ack){.ticket = {(uint8_t)i}, .verdict = CV_VERDICT_ACCEPTED};
  }
  measure(&bench, "tokens", &(struct cv_crowd_frame){.tokens = ROWS, .token = tokens}, ROWS);
  measure(&bench, "assigns", &(struct cv_crowd_frame){.assigns = ROWS, .assign = assigns}, ROWS);
  measure(&bench, "acks", &(struct cv_crowd_frame){.acks = ROWS, .ack = acks}, ROWS);
  measure(&bench, "both", &(struct cv_crowd_frame){.assigns = ROWS, .assign = assigns, .acks = ROWS, .ack = acks},
          2 * ROWS);
  cv_arena_fini(&bench.arena);
  cv_arena_fini(&bench.scratch);
  cv_buf_fini(&bench.out);
  return 0;
}
