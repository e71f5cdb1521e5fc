/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <stdlib.h>

#include "common/crypto/crypto.h"

/* Bytes from hexadecimal digits; the caller knows how many. */
static void from_hex(const char *hex, uint8_t *ret) {
  for (size_t i = 0; hex[2 * i] != '\0'; i++) {
    const char digits[] = {hex[2 * i], hex[2 * i + 1], '\0'};
    ret[i] = (uint8_t)strtoul(digits, NULL, 16);
  }
}

static struct cv_key counting_key(void) {
  struct cv_key key;
  for (size_t i = 0; i < sizeof(key.bytes); i++) {
    key.bytes[i] = (uint8_t)i;
  }
  return key;
}

static void assert_hex(const uint8_t *bytes, const char *hex) {
  uint8_t expected[64];
  from_hex(hex, expected);
  assert_memory_equal(bytes, expected, strlen(hex) / 2);
}

/* FIPS 180-4's examples. */
static void test_sha256_known_answers(void **state) {
  (void)state;
  struct cv_digest digest;
  cv_sha256("abc", 3, NULL, 0, &digest);
  assert_hex(digest.bytes, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  cv_sha256("a", 1, "bc", 2, &digest);
  assert_hex(digest.bytes, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  cv_sha256(NULL, 0, NULL, 0, &digest);
  assert_hex(digest.bytes, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static struct cv_mac *mac_of(const struct cv_key *key) {
  struct cv_mac *mac = NULL;
  assert_int_equal(cv_mac_new(key, &mac), CV_OK);
  return mac;
}

/* RFC 4231, cases 1 and 2: HMAC pads a short key with zeros, so their keys fit. */
static void test_hmac_known_answers(void **state) {
  (void)state;
  struct cv_key key = {{0}};
  uint8_t tag[32];
  memset(key.bytes, 0x0b, 20);
  struct cv_mac *mac = mac_of(&key);
  for (int again = 0; again < 3; again++) {
    assert_int_equal(cv_mac_tag(mac, "Hi There", 8, tag, sizeof(tag)), CV_OK);
    assert_hex(tag, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  }
  cv_mac_free(mac);
  memset(key.bytes, 0, sizeof(key.bytes));
  memcpy(key.bytes, "Jefe", 4);
  mac = mac_of(&key);
  assert_int_equal(cv_mac_tag(mac, "what do ya want for nothing?", 28, tag, sizeof(tag)), CV_OK);
  assert_hex(tag, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  cv_mac_free(mac);
}

static void test_short_tag_is_the_start_of_the_long_one(void **state) {
  (void)state;
  struct cv_key key = counting_key();
  struct cv_mac *mac = mac_of(&key);
  uint8_t whole[32], cut[32];
  memset(cut, 0xee, sizeof(cut));
  assert_int_equal(cv_mac_tag(mac, "ticket", 6, whole, sizeof(whole)), CV_OK);
  assert_int_equal(cv_mac_tag(mac, "ticket", 6, cut, 12), CV_OK);
  assert_memory_equal(cut, whole, 12);
  assert_int_equal(cut[12], 0xee);
  cv_mac_free(mac);
}

/* RFC 5869 written with HMAC: extract with an empty salt, expand one block of label, its zero byte, the number. */
static void test_derived_key_is_hkdf(void **state) {
  (void)state;
  struct cv_key master = counting_key(), zero = {{0}}, extracted, expanded, derived;
  const uint8_t info[] = {'c', 'a', 'm', 'p', 'a', 'i', 'g', 'n', 0, 7, 0, 0, 0, 0, 0, 0, 0, 1};
  struct cv_mac *extract = mac_of(&zero);
  assert_int_equal(cv_mac_tag(extract, master.bytes, sizeof(master.bytes), extracted.bytes, sizeof(extracted.bytes)),
                   CV_OK);
  struct cv_mac *expand = mac_of(&extracted);
  assert_int_equal(cv_mac_tag(expand, info, sizeof(info), expanded.bytes, sizeof(expanded.bytes)), CV_OK);
  assert_int_equal(cv_key_derive(&master, "campaign", 7, &derived), CV_OK);
  assert_memory_equal(derived.bytes, expanded.bytes, sizeof(derived.bytes));
  assert_hex(derived.bytes, "e3dc31f50c7f9a9f1ba833633a5a2580ba4de4031e3fe4a3e60a7444298071fb");
  cv_mac_free(extract);
  cv_mac_free(expand);
}

static void test_label_and_number_give_different_keys(void **state) {
  (void)state;
  struct cv_key master = counting_key(), a, b, c;
  assert_int_equal(cv_key_derive(&master, "ticket", 1, &a), CV_OK);
  assert_int_equal(cv_key_derive(&master, "ticket", 2, &b), CV_OK);
  assert_int_equal(cv_key_derive(&master, "seal", 1, &c), CV_OK);
  assert_memory_not_equal(a.bytes, b.bytes, sizeof(a.bytes));
  assert_memory_not_equal(a.bytes, c.bytes, sizeof(a.bytes));
  cv_key_wipe(&a);
  const struct cv_key zero = {{0}};
  assert_memory_equal(a.bytes, zero.bytes, sizeof(zero.bytes));
}

static struct cv_seal *seal_of(const struct cv_key *key) {
  struct cv_seal *seal = NULL;
  assert_int_equal(cv_seal_new(key, &seal), CV_OK);
  return seal;
}

/* NIST's GCM test case 14: key, nonce and 16 bytes of text all zero. */
static void test_seal_is_aes_256_gcm(void **state) {
  (void)state;
  struct cv_key zero = {{0}};
  uint8_t sealed[44] = {0};
  const uint8_t plain[16] = {0};
  from_hex("cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919", sealed + 12);
  struct cv_seal *seal = seal_of(&zero);
  struct cv_buf out = {0};
  assert_int_equal(cv_seal_open(seal, NULL, 0, sealed, sizeof(sealed), &out), CV_OK);
  assert_int_equal(out.len, 16);
  assert_memory_equal(out.data, plain, 16);
  cv_buf_fini(&out);
  cv_seal_free(seal);
}

static void test_seal_opens_what_it_closed(void **state) {
  (void)state;
  struct cv_key key = counting_key();
  struct cv_seal *seal = seal_of(&key);
  uint8_t plain[1000];
  memset(plain, 0x5a, sizeof(plain));
  for (size_t n = 0; n <= sizeof(plain); n += 50) {
    struct cv_buf sealed = {0}, opened = {0};
    cv_buf_put_u8(&sealed, 1);
    cv_buf_put_u8(&opened, 2);
    assert_int_equal(cv_seal_close(seal, "bound", n % 6, plain, n, &sealed), CV_OK);
    assert_int_equal(sealed.len, 1 + n + CV_SEAL_OVERHEAD);
    assert_int_equal(cv_seal_open(seal, "bound", n % 6, sealed.data + 1, sealed.len - 1, &opened), CV_OK);
    assert_int_equal(opened.len, 1 + n);
    assert_int_equal(opened.data[0], 2);
    assert_memory_equal(opened.data + 1, plain, n);
    cv_buf_fini(&sealed);
    cv_buf_fini(&opened);
  }
  cv_seal_free(seal);
}

static void test_same_text_is_sealed_differently(void **state) {
  (void)state;
  struct cv_key key = counting_key();
  struct cv_seal *seal = seal_of(&key);
  struct cv_buf a = {0}, b = {0};
  assert_int_equal(cv_seal_close(seal, NULL, 0, "text", 4, &a), CV_OK);
  assert_int_equal(cv_seal_close(seal, NULL, 0, "text", 4, &b), CV_OK);
  assert_memory_not_equal(a.data, b.data, 12);
  assert_memory_not_equal(a.data + 12, b.data + 12, 4);
  cv_buf_fini(&a);
  cv_buf_fini(&b);
  cv_seal_free(seal);
}

static void assert_refused(struct cv_seal *seal, const char *bound, const uint8_t *sealed, size_t n) {
  struct cv_buf out = {0};
  cv_buf_put_u8(&out, 9);
  assert_int_equal(cv_seal_open(seal, bound, strlen(bound), sealed, n, &out), CV_ERR_DAMAGED);
  assert_int_equal(out.len, 1);
  /* No part of a text that was not authentic stays in the buffer. */
  if (n > CV_SEAL_OVERHEAD) {
    assert_memory_not_equal(out.data + 1, "exact sums", n - CV_SEAL_OVERHEAD);
  }
  cv_buf_fini(&out);
}

static void test_anything_that_does_not_fit_is_refused(void **state) {
  (void)state;
  struct cv_key key = counting_key();
  struct cv_seal *seal = seal_of(&key);
  struct cv_buf sealed = {0}, out = {0};
  assert_int_equal(cv_seal_close(seal, "commit 7", 8, "exact sums", 10, &sealed), CV_OK);
  for (size_t bit = 0; bit < sealed.len * 8; bit++) {
    sealed.data[bit / 8] ^= (uint8_t)(1U << bit % 8);
    assert_refused(seal, "commit 7", sealed.data, sealed.len);
    sealed.data[bit / 8] ^= (uint8_t)(1U << bit % 8);
  }
  for (size_t n = 0; n < sealed.len; n++) {
    assert_refused(seal, "commit 7", sealed.data, n);
  }
  assert_refused(seal, "commit 8", sealed.data, sealed.len);
  assert_refused(seal, "commit 77", sealed.data, sealed.len);
  assert_refused(seal, "", sealed.data, sealed.len);
  key.bytes[31] ^= 1;
  struct cv_seal *other = seal_of(&key);
  assert_refused(other, "commit 7", sealed.data, sealed.len);
  /* A refusal leaves the seal usable. */
  assert_int_equal(cv_seal_open(seal, "commit 7", 8, sealed.data, sealed.len, &out), CV_OK);
  assert_memory_equal(out.data, "exact sums", 10);
  cv_buf_fini(&sealed);
  cv_buf_fini(&out);
  cv_seal_free(seal);
  cv_seal_free(other);
}

/* Computed with another library (Python's cryptography): a counting key and seed, the counter as the nonce's end. */
static void test_a_given_nonce_is_not_stored(void **state) {
  (void)state;
  static const char bound[] = "context and place";
  struct cv_key key = counting_key();
  const uint8_t nonce[CV_SEAL_NONCE_BYTES] = {0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
  uint8_t seed[32], sealed[32 + CV_SEAL_TAG_BYTES], opened[32];
  for (size_t i = 0; i < sizeof(seed); i++) {
    seed[i] = (uint8_t)(100 + i);
  }
  struct cv_seal *seal = seal_of(&key);
  assert_int_equal(cv_seal_close_at(seal, nonce, bound, strlen(bound), seed, sizeof(seed), sealed), CV_OK);
  assert_hex(sealed,
             "60340369b58863f56ff293806e164b830e8c2ab5afac321795862a2febb65d4e"
             "e323d13fa13edbfaf242bb44939899ff");
  assert_int_equal(cv_seal_open_at(seal, nonce, bound, strlen(bound), sealed, sizeof(sealed), opened), CV_OK);
  assert_memory_equal(opened, seed, sizeof(seed));
  cv_seal_free(seal);
}

static void test_a_seed_opens_only_where_it_belongs(void **state) {
  (void)state;
  struct cv_key key = counting_key();
  uint8_t nonce[CV_SEAL_NONCE_BYTES] = {0}, sealed[32 + CV_SEAL_TAG_BYTES], opened[32];
  const uint8_t seed[32] = "thirty-two bytes of secret seed", zeros[32] = {0};
  struct cv_seal *seal = seal_of(&key);
  assert_int_equal(cv_seal_close_at(seal, nonce, "place 1", 7, seed, sizeof(seed), sealed), CV_OK);
  memset(opened, 1, sizeof(opened));
  assert_int_equal(cv_seal_open_at(seal, nonce, "place 2", 7, sealed, sizeof(sealed), opened), CV_ERR_DAMAGED);
  assert_memory_equal(opened, zeros, sizeof(zeros));
  nonce[11] = 1; /* another counter */
  assert_int_equal(cv_seal_open_at(seal, nonce, "place 1", 7, sealed, sizeof(sealed), opened), CV_ERR_DAMAGED);
  nonce[11] = 0;
  for (size_t bit = 0; bit < 8 * sizeof(sealed); bit++) {
    sealed[bit / 8] ^= (uint8_t)(1U << bit % 8);
    assert_int_equal(cv_seal_open_at(seal, nonce, "place 1", 7, sealed, sizeof(sealed), opened), CV_ERR_DAMAGED);
    assert_memory_equal(opened, zeros, sizeof(zeros));
    sealed[bit / 8] ^= (uint8_t)(1U << bit % 8);
  }
  assert_int_equal(cv_seal_open_at(seal, nonce, "place 1", 7, sealed, CV_SEAL_TAG_BYTES - 1, opened), CV_ERR_DAMAGED);
  assert_int_equal(cv_seal_open_at(seal, nonce, "place 1", 7, sealed, sizeof(sealed), opened), CV_OK);
  assert_memory_equal(opened, seed, sizeof(seed));
  cv_seal_free(seal);
}

static void test_drbg_gives_fresh_words_and_keeps_none(void **state) {
  (void)state;
  static struct cv_drbg a, b;
  cv_drbg_init(&a);
  cv_drbg_init(&b);
  int ones = 0, same = 0;
  for (int i = 0; i < 2000; i++) {
    uint64_t word = cv_rng_u64(&a.rng);
    assert_int_equal(a.rng.word[a.rng.left], 0);
    ones += __builtin_popcountll(word);
    same += word == cv_rng_u64(&b.rng);
  }
  assert_int_equal(same, 0);
  assert_in_range(ones, 64000 - 1100, 64000 + 1100); /* six standard deviations */
  cv_drbg_fini(&a);
  for (size_t i = 0; i < sizeof(a.buffer) / sizeof(a.buffer[0]); i++) {
    assert_int_equal(a.buffer[i], 0);
  }
  assert_true(cv_rng_u64(&a.rng) != cv_rng_u64(&a.rng)); /* refills, without the wiped words */
  cv_drbg_fini(&a);
  cv_drbg_fini(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sha256_known_answers),
      cmocka_unit_test(test_hmac_known_answers),
      cmocka_unit_test(test_short_tag_is_the_start_of_the_long_one),
      cmocka_unit_test(test_derived_key_is_hkdf),
      cmocka_unit_test(test_label_and_number_give_different_keys),
      cmocka_unit_test(test_seal_is_aes_256_gcm),
      cmocka_unit_test(test_seal_opens_what_it_closed),
      cmocka_unit_test(test_same_text_is_sealed_differently),
      cmocka_unit_test(test_anything_that_does_not_fit_is_refused),
      cmocka_unit_test(test_a_given_nonce_is_not_stored),
      cmocka_unit_test(test_a_seed_opens_only_where_it_belongs),
      cmocka_unit_test(test_drbg_gives_fresh_words_and_keeps_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
