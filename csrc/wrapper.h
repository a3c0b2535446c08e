/* wrapper.h: what stands before the wrappers that cffi generates, which include Python's headers first.
 *
 * Around every call they open and close the scope of one of Python's macro pairs, which gives up the
 * interpreter's lock. Ours leaves that to the call: see base/gil.h. They also carry errno to and
 * from Python, for which we have no use. What they make of arrays is in handle.h. */
#include "base/gil.h"
#include "handle.h"
#include "minigrad.h"
#include "node.h"

/* Of this thread: NULL outside calls from Python; the address of this variable while a call holds the
 * lock; else what is needed to take it back. */
static _Thread_local void *wrapper_gil;

void mg_gil_give_up(void) {
    if (wrapper_gil == &wrapper_gil) wrapper_gil = PyEval_SaveThread();
}

/* Its address is asked for once a call, which takes a function of the loader's. */
static MG_NOINLINE void **wrapper_lock(void) { return &wrapper_gil; }

/* Calls nest: what C calls back may call again. */
#undef Py_BEGIN_ALLOW_THREADS
#define Py_BEGIN_ALLOW_THREADS                                                                      \
    {                                                                                               \
        void **wrapper_own = wrapper_lock(), *wrapper_outer = *wrapper_own;                         \
        *wrapper_own = wrapper_own;
#undef Py_END_ALLOW_THREADS
#define Py_END_ALLOW_THREADS                                                                        \
        if (*wrapper_own != wrapper_own) PyEval_RestoreThread(*wrapper_own);                        \
        *wrapper_own = wrapper_outer;                                                               \
    }
#undef _cffi_restore_errno
#define _cffi_restore_errno() ((void)0)
#undef _cffi_save_errno
#define _cffi_save_errno() ((void)0)

#include "backward.h"
#include "parts.h"

/* The wrappers, and not the operations above, call functions for both. */
static MG_NOINLINE void *wrapper_enter(void) {
    void *outer = wrapper_gil;
    wrapper_gil = &wrapper_gil;
    return outer;
}
static MG_NOINLINE void wrapper_leave(void *outer) {
    if (wrapper_gil != &wrapper_gil) PyEval_RestoreThread(wrapper_gil);
    wrapper_gil = outer;
}
#undef Py_BEGIN_ALLOW_THREADS
#define Py_BEGIN_ALLOW_THREADS { void *wrapper_outer = wrapper_enter();
#undef Py_END_ALLOW_THREADS
#define Py_END_ALLOW_THREADS wrapper_leave(wrapper_outer); }

/* Where a number is refused, what was made of lists before it is freed. */
static MG_NOINLINE PyObject *wrapper_failed(struct _cffi_freeme_s *room) {
    if (PyErr_Occurred() && room) _cffi_free_array_arguments(room);
    return PyErr_Occurred();
}
static struct _cffi_freeme_s *const large_args_free = NULL; /* of wrappers that take no pointer */
#define PyErr_Occurred() wrapper_failed(large_args_free)

/* The wrappers run straight through: for size they are a third shorter, and no slower. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("Os")
#endif
