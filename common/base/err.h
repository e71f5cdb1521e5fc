/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one error type, and the one line that a person reads about an error.
 *
 * A function that can fail returns an enum cv_err and is marked CV_MUST_USE. Where a person will have to act, it also
 * takes a `struct cv_why *` (may be NULL) and leaves one line there: what, where, what was expected. Outputs stay
 * untouched on failure.
 */
#ifndef CV_BASE_ERR_H
#define CV_BASE_ERR_H

#include <stdarg.h>
#include <stddef.h>

#define CV_MUST_USE           __attribute__((warn_unused_result))
#define CV_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

#define CV_ERR_TABLE(X)                                \
  X(CV_ERR_NOMEM, "out of memory")                     \
  X(CV_ERR_INVALID, "invalid value")                   \
  X(CV_ERR_FORMAT, "malformed data")                   \
  X(CV_ERR_LIMIT, "over a limit")                      \
  X(CV_ERR_NOT_FOUND, "not found")                     \
  X(CV_ERR_EXISTS, "exists already")                   \
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

/* A few words for an error code; never NULL. */
const char *cv_err_text(enum cv_err err);

/* One line for a person, always terminated; longer text is cut, and what is not clean (text.h) becomes '?'. */
struct cv_why {
  char text[480];
};

/*
 * cv_fail(why, err, format, ...) writes the line into `why` (if not NULL) and is `err`, so that a failure is one
 * statement. A macro, so that the compiler sees which error it is.
 */
#define cv_fail(why, err, ...) (cv_why_set((why), __VA_ARGS__), (err))
void cv_why_set(struct cv_why *why, const char *fmt, ...) CV_PRINTF(2, 3);
void cv_why_vset(struct cv_why *why, const char *fmt, va_list args) CV_PRINTF(2, 0);

/* Puts ": <reason>" behind the line that is there. */
void cv_why_because(struct cv_why *why, const char *reason);
/* Puts "<prefix>: " in front of the line that is there. `prefix` is a format. */
void cv_why_prefix(struct cv_why *why, const char *fmt, ...) CV_PRINTF(2, 3);

/* For our own bugs only: prints the place and aborts, in every build. What a peer or file says takes the error path. */
#define CV_REQUIRE(condition) ((condition) ? (void)0 : cv_require_failed(#condition, __FILE__, __LINE__))
_Noreturn void cv_require_failed(const char *condition, const char *file, int line);

#define CV_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Returns from the caller with the error of `expression`, if it has one. */
#define CV_TRY(expression)                 \
  do {                                     \
    enum cv_err cv_try_err = (expression); \
    if (cv_try_err != CV_OK) {             \
      return cv_try_err;                   \
    }                                      \
  } while (0)

#endif
