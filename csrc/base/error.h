/* error.h: error codes of C, with up to two numbers, one set for each thread.
 *
 * mg_fail returns NULL, so a function that makes arrays can end with `return mg_fail(...)`.
 */
#ifndef MG_ERROR_H
#define MG_ERROR_H

#include "minigrad.h"
#include "platform.h"

void *mg_fail(int code, int64_t detail0, int64_t detail1);
int mg_fail_code(int code, int64_t detail0, int64_t detail1); /* the same, returning the code */

#endif
