/* error.c: the last error of each thread: a code and two numbers. */
#include "error.h"

static _Thread_local int last_code;
static _Thread_local int64_t last_detail[2];

void *mg_fail(int code, int64_t detail0, int64_t detail1) {
    last_code = code;
    last_detail[0] = detail0;
    last_detail[1] = detail1;
    return NULL;
}

int mg_fail_code(int code, int64_t detail0, int64_t detail1) {
    mg_fail(code, detail0, detail1);
    return code;
}

int mg_error(void) { return last_code; }
int64_t mg_error_detail(int i) { return i == 0 || i == 1 ? last_detail[i] : 0; }
