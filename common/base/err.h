/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error codes, and the one-line message that explains an error to a person.
 *
 * A function that can fail returns an enum cv_err and is marked CV_MUST_USE. If a person has to act on the error, the
 * function also takes a `struct cv_why *` (may be NULL) and writes one line there: `WHERE: what is wrong; expected
 * WHAT`. On failure, outputs stay unchanged.
 */
#ifndef CV_BASE_ERR_H
#define CV_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#define CV_MUST_USE           __attribute__((warn_unused_result))
#define CV_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

#define CV_ERR_TABLE(X)                                \
  X(CV_ERR_NOMEM, "out of memory")                     \
  X(CV_ERR_INVALID, "invalid value")                   \
  X(CV_ERR_FORMAT, "malformed data")                   \
  X(CV_ERR_LIMIT, "over a limit")                      \
  X(CV_ERR_NOT_FOUND, "not found")                     \
  X(CV_ERR_EXISTS, "already exists")                   \
  X(CV_ERR_DENIED, "not permitted")                    \
  X(CV_ERR_STATE, "not possible in this state")        \
  X(CV_ERR_IO, "input or output failed")               \
  X(CV_ERR_CLOSED, "closed")                           \
  X(CV_ERR_CRYPTO, "a cryptographic operation failed") \
  X(CV_ERR_DB, "the database failed")                  \
  X(CV_ERR_DAMAGED, "damaged data")                    \
  X(CV_ERR_VERSION, "unsupported version")

enum cv_err {
  CV_OK = 0,
#define CV_ERR_ENTRY(name, text) name,
  CV_ERR_TABLE(CV_ERR_ENTRY)
#undef CV_ERR_ENTRY
};

/* The text of an error code; never NULL. */
const char *cv_err_text(enum cv_err err);

/* A one-line message, always terminated. Longer text is cut; bytes that are not clean text (text.h) become '?'. */
struct cv_why {
  char text[480];
};

/*
 * cv_fail(why, err, format, ...) formats the message into `why` (if not NULL) and evaluates to `err`. It is a macro so
 * that the compiler sees which error is returned.
 */
#define cv_fail(why, err, ...) (cv_why_set((why), __VA_ARGS__), (err))
void cv_why_set(struct cv_why *why, const char *fmt, ...) CV_PRINTF(2, 3);
void cv_why_vset(struct cv_why *why, const char *fmt, va_list args) CV_PRINTF(2, 0);

/* Appends ": <reason>" to the message. */
void cv_why_because(struct cv_why *why, const char *reason);
/* Prepends "<prefix>: " to the message. `prefix` is a printf format. */
void cv_why_prefix(struct cv_why *why, const char *fmt, ...) CV_PRINTF(2, 3);

/* For bugs in this program only: prints the place and aborts, in every build. Wrong input from a peer or a file
 * returns an error instead. */
#define CV_REQUIRE(condition) ((condition) ? (void)0 : cv_require_failed(#condition, __FILE__, __LINE__))
_Noreturn void cv_require_failed(const char *condition, const char *file, int line);

/*
 * Every entry function of a core ends with this call: running out of memory is final for the core. Sets *failed if
 * `err` is CV_ERR_NOMEM. Once *failed is set, returns CV_ERR_NOMEM and writes its message; otherwise returns `err` and
 * leaves `why` unchanged.
 */
CV_MUST_USE enum cv_err cv_unless_failed(bool *failed, enum cv_err err, struct cv_why *why);

#define CV_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Returns the error of `expression` from the calling function, if there is one. */
#define CV_TRY(expression)                 \
  do {                                     \
    enum cv_err cv_try_err = (expression); \
    if (cv_try_err != CV_OK) {             \
      return cv_try_err;                   \
    }                                      \
  } while (0)

#endif
