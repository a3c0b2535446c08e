/* wrapper.h: what stands before the wrappers that cffi generates, which include Python's headers first.
 *
 * Around every call they open and close the scope of one of Python's macro pairs, which gives up the
 * interpreter's lock. Ours leaves that to the call: see threads/gil.h. They also carry errno to and
 * from Python, for which we have no use. What they make of arrays is in handle.h. */
#include "minigrad.h"
#include "handle.h"
#include "node.h"
#include "threads/gil.h"

/* Of this thread: NULL outside calls from Python; the address of this variable while a call holds the
 * lock; else what is needed to take it back. */
static _Thread_local void *wrapper_gil;

void mg_gil_give_up(void) {
    if (wrapper_gil == &wrapper_gil) wrapper_gil = PyEval_SaveThread();
}

/* Calls nest: what C calls back may call again. */
#undef Py_BEGIN_ALLOW_THREADS
#define Py_BEGIN_ALLOW_THREADS                                                                      \
    {                                                                                               \
        void *wrapper_outer = wrapper_gil;                                                            \
        wrapper_gil = &wrapper_gil;
#undef Py_END_ALLOW_THREADS
#define Py_END_ALLOW_THREADS                                                                        \
        if (wrapper_gil != &wrapper_gil) PyEval_RestoreThread(wrapper_gil);                            \
        wrapper_gil = wrapper_outer;                                                                  \
    }
#undef _cffi_restore_errno
#define _cffi_restore_errno() ((void)0)
#undef _cffi_save_errno
#define _cffi_save_errno() ((void)0)

#include "backward.h"
#include "tensor.h"

/* The wrappers run straight through: for size they are a third shorter, and no slower. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("Os")
#endif
