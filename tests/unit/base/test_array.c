/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "tests/support/alloc_fault.h"

struct triple {
  uint16_t a, b, c;
};

static void test_push(void **state) {
  struct triple *triple = NULL;
  size_t triples = 0, cap = 0;
  for (uint16_t i = 0; i < 1000; i++) {
    size_t before = cap;
    struct triple *at = CV_ARRAY_PUSH(triple, triples, cap);
    assert_ptr_equal(at, &triple[i]);
    assert_true(triples == i + 1U && (cap == before || cap >= 2 * before));
    *at = (struct triple){i, (uint16_t)(i + 1), (uint16_t)(i + 2)};
  }
  assert_int_equal(cap, 1024);
  for (uint16_t i = 0; i < 1000; i++) {
    assert_true(triple[i].a == i && triple[i].b == i + 1 && triple[i].c == i + 2);
  }
  free(triple);
}

static void test_room(void **state) {
  uint32_t *number = NULL;
  size_t cap = 0;
  assert_int_equal(CV_ARRAY_ROOM(number, 0, cap), CV_OK);
  assert_true(number == NULL && cap == 0);
  assert_int_equal(CV_ARRAY_ROOM(number, 1, cap), CV_OK);
  assert_int_equal(cap, 8);
  number[7] = 7;
  const uint32_t *before = number;
  assert_int_equal(CV_ARRAY_ROOM(number, 8, cap), CV_OK);
  assert_true(number == before && cap == 8);
  assert_int_equal(CV_ARRAY_ROOM(number, 33, cap), CV_OK);
  assert_int_equal(cap, 64);
  assert_int_equal(number[7], 7);
  number[63] = 63;
  free(number);
}

/* More bytes, and more elements, than a size_t can count. */
static void test_overflow(void **state) {
  uint64_t *number = NULL;
  size_t count = 0, cap = 0;
  uint64_t *at = CV_ARRAY_PUSH(number, count, cap);
  assert_non_null(at);
  *at = 5;
  const size_t wanted[] = {SIZE_MAX, SIZE_MAX / 2 + 1, SIZE_MAX / 2, SIZE_MAX / sizeof(*number) + 1};
  for (size_t i = 0; i < CV_COUNT(wanted); i++) {
    assert_int_equal(CV_ARRAY_ROOM(number, wanted[i], cap), CV_ERR_NOMEM);
    assert_true(cap == 8 && number == at && *number == 5);
  }
  free(number);
}

static void test_no_memory(void **state) {
  ALLOC_FAULT_EACH(fault, .rest = false) {
    uint32_t *number = NULL;
    size_t count = 0, cap = 0;
    uint32_t *at = NULL;
    alloc_fault_arm();
    for (uint32_t i = 0; i < 100; i++) {
      uint32_t *was = number;
      size_t cap_was = cap;
      at = CV_ARRAY_PUSH(number, count, cap);
      if (at == NULL) {
        assert_true(number == was && cap == cap_was && count == i);
        break;
      }
      *at = i;
    }
    alloc_fault_pause();
    assert_true(alloc_fault_hit() == (at == NULL) && (count == 100) == (at != NULL));
    for (uint32_t i = 0; i < count; i++) {
      assert_int_equal(number[i], i);
    }
    free(number);
  }
}

struct queue {
  uint32_t *number;
  size_t head, count, cap;
};

static enum cv_err put(struct queue *queue, uint32_t number) {
  CV_TRY(CV_ARRAY_RING_ROOM(queue->number, queue->head, queue->count, queue->cap));
  queue->number[(queue->head + queue->count++) % queue->cap] = number;
  return CV_OK;
}

static uint32_t take(struct queue *queue) {
  uint32_t number = queue->number[queue->head];
  queue->head = (queue->head + 1) % queue->cap;
  queue->count--;
  return number;
}

/* Grown with its head at each position. */
static void test_ring(void **state) {
  for (uint32_t ahead = 0; ahead < 20; ahead++) {
    struct queue queue = {0};
    uint32_t in = 0, out = 0;
    for (; in < ahead; in++) {
      assert_int_equal(put(&queue, in), CV_OK);
      assert_int_equal(take(&queue), out++);
    }
    for (uint32_t i = 0; i < 100; i++) {
      assert_int_equal(put(&queue, in++), CV_OK);
      assert_int_equal(queue.count, i + 1);
    }
    while (queue.count > 0) {
      assert_int_equal(take(&queue), out++);
    }
    assert_int_equal(out, in);
    free(queue.number);
  }
}

static void test_ring_no_memory(void **state) {
  ALLOC_FAULT_EACH(fault, .rest = false) {
    struct queue queue = {0};
    uint32_t in = 0, out = 0;
    enum cv_err err = CV_OK;
    alloc_fault_arm();
    while (in < 50 && (err = put(&queue, in)) == CV_OK) {
      in++;
      if (in % 5 == 0) {
        assert_int_equal(take(&queue), out++);
      }
    }
    alloc_fault_pause();
    assert_true(err == (alloc_fault_hit() ? CV_ERR_NOMEM : CV_OK) && queue.count == in - out);
    while (queue.count > 0) {
      assert_int_equal(take(&queue), out++);
    }
    assert_int_equal(out, in);
    free(queue.number);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_push),      cmocka_unit_test(test_room), cmocka_unit_test(test_overflow),
      cmocka_unit_test(test_no_memory), cmocka_unit_test(test_ring), cmocka_unit_test(test_ring_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
